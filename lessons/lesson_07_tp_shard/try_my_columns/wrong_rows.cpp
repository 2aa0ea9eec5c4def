// fails: rows, where columns are asked for
#include <algorithm>

#include "lessons/lesson_07_tp_shard/try_my_columns/contract.hpp"

using namespace muonwalk;

Matrix my_columns(const Matrix& whole, int tp, int tp_rank) {
  Matrix slice(whole.rows(), whole.cols() / tp);
  const float* first = whole.data() + tp_rank * slice.size();
  std::copy(first, first + slice.size(), slice.data());
  return slice;
}
