// fails: It is the first matrix of the bucket
#include "lessons/lesson_04_dp_gather/try_view_in_bucket/contract.hpp"

using namespace muonwalk;

Matrix view_in_bucket(const Flat& bucket, Index begin, const DistMeta& meta) {
  return Matrix(meta.shape.rows, meta.shape.cols, Flat(bucket.begin(), bucket.begin() + meta.shape.size()));
}
