// fails: a crash
#include "lessons/lesson_07_tp_shard/try_my_columns/contract.hpp"

using namespace muonwalk;

Matrix my_columns(const Matrix& whole, int tp, int tp_rank) {
  Matrix slice(whole.rows(), whole.cols() / tp);
  for (Index i = 0; i < slice.rows(); ++i)
    for (Index j = 0; j < slice.cols(); ++j) slice(i, j) = whole.data()[(tp_rank + 1) * 1000000000];
  return slice;
}
