// fails: the shape of
#include "lessons/lesson_08_dp_shard/try_my_elements/contract.hpp"

using namespace muonwalk;

Flat my_elements(const Matrix& slice, Range global_range, Range mine) {
  const Range owned = intersection(global_range, mine);
  if (owned.empty()) return {};
  const auto begin = slice.flat().begin() - global_range.begin;
  return Flat(begin + owned.begin, begin + owned.end - 1);
}
