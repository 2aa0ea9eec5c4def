#include "lessons/lesson_04_dp_gather/try_view_in_bucket/contract.hpp"

using namespace muonwalk;

Matrix view_in_bucket(const Flat& bucket, Index begin, const DistMeta& meta) {
  const auto first = bucket.begin() + (meta.global_range.begin - begin);
  return Matrix(meta.shape.rows, meta.shape.cols, Flat(first, first + meta.shape.size()));
}
