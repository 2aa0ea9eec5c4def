// fails: It is as many elements as I own, but from the start of the matrix
#include "lessons/lesson_08_dp_shard/try_my_elements/contract.hpp"

using namespace muonwalk;

Flat my_elements(const Matrix& slice, Range global_range, Range mine) {
  const Range owned = intersection(global_range, mine);
  if (owned.empty()) return {};
  return Flat(slice.flat().begin(), slice.flat().begin() + owned.size());
}
