// fails: All of it is zeros
#include "lessons/lesson_04_dp_gather/try_view_in_bucket/contract.hpp"

using namespace muonwalk;

Matrix view_in_bucket(const Flat& bucket, Index begin, const DistMeta& meta) {
  // Your code goes here. Matrix(rows, cols, values) views values as a matrix.
  return Matrix(meta.shape.rows, meta.shape.cols);
}
