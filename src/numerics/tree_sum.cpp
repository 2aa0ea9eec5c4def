#include "src/numerics/tree_sum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace muonwalk {
namespace {

// A balanced binary tree can be added leaf by leaf with one stack. After r leaves the stack holds one finished subtree
// for each one bit of r, the largest at the bottom. A new leaf first joins the subtree of one leaf if there is one, the
// result joins the subtree of two, and so on: exactly the carries of counting up from r to r + 1. What is left at the
// end are the odd ones, which join from the top down.
constexpr int max_depth = 64;  // one subtree for every bit of a count

class Carries {
 public:
  // A leaf has been put on the stack; join(below, top) adds what lies at these two places up into the first.
  template <class Join>
  void pushed(const Join& join) {
    ++depth_;
    for (Index leaf = leaves_++; leaf & 1; leaf >>= 1) join_top(join);
  }
  // No leaf comes any more: the sum is at place 0.
  template <class Join>
  void finish(const Join& join) {
    while (depth_ > 1) join_top(join);
  }
  std::size_t depth() const { return depth_; }

 private:
  template <class Join>
  void join_top(const Join& join) {
    --depth_;
    join(depth_ - 1, depth_);
  }
  Index leaves_ = 0;
  std::size_t depth_ = 0;
};

// The tree over element ranges of the parts, one block of elements at a time, so that the stack stays in the cache.
constexpr Index block = 256;

void load(const float* part, Index count, float* out) { std::copy_n(part, count, out); }
void load(const bfloat16* part, Index count, float* out) { from_bf16(part, count, out); }
void store(const float* values, Index count, float* out) { std::copy_n(values, count, out); }
void store(const float* values, Index count, bfloat16* out) { to_bf16(values, count, out); }

template <class T>
T tree_sum_of_leaves(const T* leaves, Index count) {
  std::array<T, max_depth> stack{};
  const auto join = [&](std::size_t below, std::size_t top) { stack[below] = stack[below] + stack[top]; };
  Carries carries;
  for (Index leaf = 0; leaf < count; ++leaf) {
    stack[carries.depth()] = leaves[leaf];
    carries.pushed(join);
  }
  carries.finish(join);
  return stack[0];
}

template <class T>
void tree_sum_of_parts(const std::vector<const T*>& parts, Index count, T* out) {
  const Index leaves = static_cast<Index>(parts.size());
  int depth_needed = 1;
  while ((Index{1} << (depth_needed - 1)) <= leaves) ++depth_needed;
  // A workspace of a few KiB: a plain vector, because the meter counts what a rank holds, not what it scribbles on.
  std::vector<float> stack(static_cast<std::size_t>(depth_needed * block));
  for (Index start = 0; start < count; start += block) {
    const Index width = std::min(block, count - start);
    const auto level = [&](std::size_t i) { return stack.data() + static_cast<Index>(i) * width; };
    const auto join = [&](std::size_t below, std::size_t top) { add_onto(level(below), level(top), width); };
    Carries carries;
    for (const T* part : parts) {
      load(part + start, width, level(carries.depth()));
      carries.pushed(join);
    }
    carries.finish(join);
    if (leaves == 0) std::fill_n(level(0), width, 0.0f);
    // Every part of this block has been read by now, so out may be one of the parts.
    store(level(0), width, out + start);
  }
}

}  // namespace

void add_onto(float* left, const float* right, Index count) {
  for (Index i = 0; i < count; ++i) left[i] = left[i] + right[i];
}

void add_onto(Matrix& left, const Matrix& right) {
  if (left.rows() != right.rows() || left.cols() != right.cols())
    throw std::invalid_argument("a matrix " + shape_text(right.rows(), right.cols()) +
                                " can't be added onto one that is " + shape_text(left.rows(), left.cols()));
  add_onto(left.data(), right.data(), left.size());
}

float tree_sum(const float* leaves, Index count) { return tree_sum_of_leaves(leaves, count); }

double tree_sum(const double* leaves, Index count) { return tree_sum_of_leaves(leaves, count); }

void tree_sum(const std::vector<const float*>& parts, Index count, float* out) { tree_sum_of_parts(parts, count, out); }

Flat tree_sum(const std::vector<Flat>& parts) {
  std::vector<const float*> values;
  for (const Flat& part : parts) {
    if (part.size() != parts[0].size()) throw std::invalid_argument("a tree adds arrays of equal length");
    values.push_back(part.data());
  }
  if (parts.empty()) throw std::invalid_argument("a tree needs at least one array");
  Flat sum(parts[0].size());
  tree_sum(values, static_cast<Index>(sum.size()), sum.data());
  return sum;
}

void tree_sum(const std::vector<const bfloat16*>& parts, Index count, bfloat16* out) {
  tree_sum_of_parts(parts, count, out);
}

float ring_sum(const float* leaves, Index count, Index piece) {
  if (count == 0) return 0;
  float sum = leaves[(piece + 1) % count];
  for (Index step = 2; step <= count; ++step) sum += leaves[(piece + step) % count];
  return sum;
}

double pairwise_sum_of_squares(const float* values, Index count) {
  // Sixteen running sums side by side fill the vector registers; they and their order are part of the definition. The
  // square of a float is exact in double precision, so that it makes no difference whether both are fused.
  constexpr Index lanes = 16;
  constexpr Index leaf_size = 1024;
  std::vector<double> leaves;
  leaves.reserve(static_cast<std::size_t>(count / leaf_size + 1));
  for (Index start = 0; start < count; start += leaf_size) {
    const Index stop = std::min(start + leaf_size, count);
    double sums[lanes] = {};
    Index i = start;
    for (; i + lanes <= stop; i += lanes) {
      for (Index lane = 0; lane < lanes; ++lane) {
        const double value = values[i + lane];
        sums[lane] += value * value;
      }
    }
    for (Index lane = 0; i + lane < stop; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
    for (Index half = lanes / 2; half > 0; half /= 2) {
      for (Index lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    leaves.push_back(sums[0]);
  }
  return tree_sum(leaves.data(), static_cast<Index>(leaves.size()));
}

double frobenius_norm(const Matrix& x) { return std::sqrt(pairwise_sum_of_squares(x.data(), x.size())); }

void RunningTreeSum::add(Index number, std::vector<Matrix>&& leaf) {
  if (number != leaves_)
    throw std::invalid_argument("a running tree sum was given leaf " + std::to_string(number) + " where leaf " +
                                std::to_string(leaves_) + " is the next one");
  const auto same_shape = [](const Matrix& a, const Matrix& b) { return a.rows() == b.rows() && a.cols() == b.cols(); };
  if (!sums_.empty() && !std::equal(leaf.begin(), leaf.end(), sums_[0].begin(), sums_[0].end(), same_shape))
    throw std::invalid_argument("a tree adds leaves with arrays of equal shapes");
  sums_.push_back(std::move(leaf));
  // As in tree_sum: the carries of counting on by one.
  for (Index carry = leaves_; carry & 1; carry >>= 1) join_last_two();
  ++leaves_;
}

std::vector<Matrix> RunningTreeSum::take() {
  if (sums_.empty()) throw std::logic_error("a running tree sum was asked for before its first leaf");
  while (sums_.size() > 1) join_last_two();
  std::vector<Matrix> sum = std::move(sums_[0]);
  sums_.clear();
  leaves_ = 0;
  return sum;
}

void RunningTreeSum::join_last_two() {
  const std::vector<Matrix> right = std::move(sums_.back());
  sums_.pop_back();
  for (std::size_t i = 0; i < right.size(); ++i) add_onto(sums_.back()[i], right[i]);
}

}  // namespace muonwalk
