// fails: All of it is zeros
#include "lessons/lesson_03_virtual_buffer/try_find_element/contract.hpp"

using namespace muonwalk;

Address find_element(const Buffer& buffer, const DistMeta& meta, Index row, Index col) {
  Address address;
  // Your code goes here, a line for each member.
  return address;
}
