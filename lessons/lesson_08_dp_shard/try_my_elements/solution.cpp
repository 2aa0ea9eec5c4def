#include "lessons/lesson_08_dp_shard/try_my_elements/contract.hpp"

using namespace muonwalk;

// What both ranges share, counted from where the matrix begins.
Flat my_elements(const Matrix& slice, Range global_range, Range mine) {
  const Range owned = intersection(global_range, mine);
  const auto begin = slice.flat().begin() - global_range.begin;
  if (owned.empty()) return {};
  return Flat(begin + owned.begin, begin + owned.end);
}
