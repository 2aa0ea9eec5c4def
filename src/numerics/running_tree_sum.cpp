#include "src/numerics/running_tree_sum.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include "src/numerics/tree_sum.hpp"

namespace muonwalk {
namespace {

bool same_shape(const Flat& a, const Flat& b) { return a.size() == b.size(); }
bool same_shape(const Matrix& a, const Matrix& b) { return a.rows() == b.rows() && a.cols() == b.cols(); }

Index elements_of(const Flat& array) { return static_cast<Index>(array.size()); }
Index elements_of(const Matrix& array) { return array.size(); }

template <class Array>
bool same_shapes(const std::vector<Array>& a, const std::vector<Array>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!same_shape(a[i], b[i])) return false;
  return true;
}

}  // namespace

template <class Array>
void RunningTreeSum<Array>::add(Index number, std::vector<Array>&& leaf) {
  if (number != leaves_)
    throw std::invalid_argument("a running tree sum was given leaf " + std::to_string(number) + " where leaf " +
                                std::to_string(leaves_) + " is the next one");
  if (!sums_.empty() && !same_shapes(sums_[0], leaf))
    throw std::invalid_argument("a tree adds leaves with arrays of equal shapes");
  sums_.push_back(std::move(leaf));
  // As in tree_sum: the carries of counting on by one.
  for (Index carry = leaves_; carry & 1; carry >>= 1) join_last_two();
  ++leaves_;
}

template <class Array>
std::vector<Array> RunningTreeSum<Array>::take() {
  if (sums_.empty()) throw std::logic_error("a running tree sum was asked for before its first leaf");
  while (sums_.size() > 1) join_last_two();
  std::vector<Array> sum = std::move(sums_[0]);
  sums_.clear();
  leaves_ = 0;
  return sum;
}

template <class Array>
void RunningTreeSum<Array>::join_last_two() {
  const std::vector<Array> right = std::move(sums_.back());
  sums_.pop_back();
  std::vector<Array>& left = sums_.back();
  for (std::size_t i = 0; i < left.size(); ++i) add_onto(left[i].data(), right[i].data(), elements_of(left[i]));
}

template class RunningTreeSum<Flat>;
template class RunningTreeSum<Matrix>;

}  // namespace muonwalk
