#pragma once

#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// Adds the leaves as a balanced binary tree, neighbours first, the odd one carried: ((0+1)+(2+3))+((4+5)+6) for seven.
/// The order depends on nothing but the number of leaves, which is what makes sums over ranks repeatable. Zero leaves
/// give 0.
/// @{
float tree_sum(const float* leaves, Index count);
double tree_sum(const double* leaves, Index count);
/// @}

/// The tree over whole arrays: out[i] = tree over r of parts[r][i], for i < count. With `parts.size()` a power of
/// two, grouping the leaves by rank first gives the same bits. `out` may be one of the parts.
void tree_sum(const std::vector<const float*>& parts, Index count, float* out);

/// The sum of arrays, at least one. Throws std::invalid_argument where their lengths differ.
Flat tree_sum(const std::vector<Flat>& parts);

/// The tree over arrays of bfloat16: added in float32, rounded once at the end.
void tree_sum(const std::vector<const bfloat16*>& parts, Index count, bfloat16* out);

/// left[i] ← left[i] + right[i], for i < count: the step that all these sums are made of.
void add_onto(float* left, const float* right, Index count);

/// Adds all elements of a matrix onto another. Throws std::invalid_argument where their shapes differ.
void add_onto(Matrix& left, const Matrix& right);

/// The leaves added as a textbook's ring reduce-scatter adds piece number `piece`: it begins with the leaf of the next
/// rank, goes round and ends with the piece's own, so every piece has an order of its own. Nothing in Muonwalk
/// adds like this; it is here to be compared with. Zero leaves give 0.
float ring_sum(const float* leaves, Index count, Index piece);

/// The sum of squares in double precision, by pairwise summation in a fixed order that depends on `count` alone.
double pairwise_sum_of_squares(const float* values, Index count);

/// The Frobenius norm √Σx², in double precision: it neither overflows nor underflows for any finite float32 input.
double frobenius_norm(const Matrix& x);

/// tree_sum of leaves that come one after the other, as the gradients of micro-batches do: the same additions in the
/// same order, so the same bits, without holding all leaves at once. A leaf is a list of matrices, for example one
/// gradient per parameter; each of them has a tree of its own.
class RunningTreeSum {
 public:
  /// Adds leaf number `number`. Leaves come in the order of their numbers, from 0; what has come out of order has to
  /// wait for its turn. The matrices are taken over, and not copied. Throws std::invalid_argument, and changes nothing,
  /// for any other number, and for matrices that differ from those of the first leaf in number or shape.
  void add(Index number, std::vector<Matrix>&& leaf);
  /// How many leaves have been added: the number of the next one.
  Index leaves() const { return leaves_; }
  /// How many sums are held now: of m leaves, as many as the binary digits of m have ones, and while a leaf is being
  /// added one more, so never more than ⌊log2 m⌋ + 1.
  int sums() const { return static_cast<int>(sums_.size()); }
  /// The sum of all leaves so far, and forgets them: the next leaf is number 0 again. Throws std::logic_error where
  /// there was no leaf.
  std::vector<Matrix> take();

 private:
  void join_last_two();

  Index leaves_ = 0;
  std::vector<std::vector<Matrix>> sums_;  // finished subtrees, the largest first
};

}  // namespace muonwalk
