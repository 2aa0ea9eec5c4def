#include "lessons/lesson_05_tp_gather/try_join_columns/contract.hpp"

using namespace muonwalk;

// Element (i, j) of slice t lies at t · slice.size() + i · slice.cols + j of what was gathered, and belongs in column
// t · slice.cols + j of the whole.
Matrix join_columns(const Flat& gathered, Shape slice, int tp) {
  Matrix whole(slice.rows, tp * slice.cols);
  for (int t = 0; t < tp; ++t)
    for (Index i = 0; i < slice.rows; ++i)
      for (Index j = 0; j < slice.cols; ++j)
        whole(i, t * slice.cols + j) = gathered[t * slice.size() + i * slice.cols + j];
  return whole;
}
