// fails: your line 18 asks for element
#include "lessons/lesson_04_dp_gather/try_view_in_bucket/contract.hpp"

using namespace muonwalk;

Matrix view_in_bucket(const Flat& bucket, Index begin, const DistMeta& meta) {
  Matrix matrix(meta.shape.rows, meta.shape.cols);
  for (Index i = 0; i < matrix.size(); ++i) matrix.flat()[i] = bucket[meta.global_range.begin + i];
  return matrix;
}
