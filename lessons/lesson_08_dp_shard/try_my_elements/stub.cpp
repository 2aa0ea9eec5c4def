// fails: It is empty
#include "lessons/lesson_08_dp_shard/try_my_elements/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
// Matrix holds floats row by row: m(i, j), m.rows(), m.cols(), and all of them as m.flat().
// Range runs from `begin` up to, but not including, `end`; it has size() and empty().
Flat my_elements(const Matrix& slice, Range global_range, Range mine) {
  // Your code goes here. intersection(a, b) is what two ranges share.
  return {};
}
