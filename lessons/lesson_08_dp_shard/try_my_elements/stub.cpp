// fails: It is empty
#include "lessons/lesson_08_dp_shard/try_my_elements/contract.hpp"

using namespace muonwalk;

Flat my_elements(const Matrix& slice, Range global_range, Range mine) {
  // Your code goes here. intersection(a, b) is what two ranges share.
  return {};
}
