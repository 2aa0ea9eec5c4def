// fails: All of it is zeros
#include "lessons/lesson_04_dp_gather/try_view_in_bucket/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
// Matrix holds floats row by row: m(i, j), m.rows(), m.cols(), and all of them as m.flat().
// DistMeta says where a matrix lies: its shape, its global_range in the buffer, and its bucket_idx.
Matrix view_in_bucket(const Flat& bucket, Index begin, const DistMeta& meta) {
  // Your code goes here. Matrix(rows, cols, values) views values as a matrix.
  return Matrix(meta.shape.rows, meta.shape.cols);
}
