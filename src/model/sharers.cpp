#include "src/model/sharers.hpp"

#include "src/numerics/tree_sum.hpp"

namespace muonwalk {
namespace {

Matrix sum_of_range(Index begin, Index end, const std::function<Matrix(Index)>& leaf) {
  if (end - begin == 1) return leaf(begin);
  // Neighbours are paired first and the odd one is carried, so the left branch has a power of two of leaves.
  Index left = 1;
  while (left * 2 < end - begin) left *= 2;
  Matrix sum = sum_of_range(begin, begin + left, leaf);
  add_onto(sum, sum_of_range(begin + left, end, leaf));
  return sum;
}

}  // namespace

Matrix sum_of_leaves(Index count, const std::function<Matrix(Index)>& leaf) { return sum_of_range(0, count, leaf); }

}  // namespace muonwalk
