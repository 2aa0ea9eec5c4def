#include "src/numerics/running_tree_sum.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "src/numerics/tree_sum.hpp"

namespace muonwalk {

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
