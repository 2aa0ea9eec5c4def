// fails: It is the whole slice
#include "lessons/lesson_08_dp_shard/try_my_elements/contract.hpp"

using namespace muonwalk;

Flat my_elements(const Matrix& slice, Range global_range, Range mine) {
  if (intersection(global_range, mine).empty()) return {};
  return slice.flat();
}
