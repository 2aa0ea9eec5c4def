#pragma once

#include <vector>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

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
