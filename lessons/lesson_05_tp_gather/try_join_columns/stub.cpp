// fails: All of it is zeros
#include "lessons/lesson_05_tp_gather/try_join_columns/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
// Matrix holds floats row by row: m(i, j), m.rows(), m.cols(), and all of them as m.flat().
// Shape has rows, cols, and size(), which is rows · cols.
Matrix join_columns(const Flat& gathered, Shape slice, int tp) {
  Matrix whole(slice.rows, tp * slice.cols);
  // Your code goes here: fill whole(i, j).
  return whole;
}
