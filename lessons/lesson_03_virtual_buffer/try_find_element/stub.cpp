// fails: All of it is zeros
#include "lessons/lesson_03_virtual_buffer/try_find_element/contract.hpp"

using namespace muonwalk;

// Buffer has `parameters`, a DistMeta for each matrix, and `buckets`, each a `range` of the buffer.
// DistMeta says where a matrix lies: its shape, its global_range in the buffer, and its bucket_idx.
Address find_element(const Buffer& buffer, const DistMeta& meta, Index row, Index col) {
  Address address;
  // Your code goes here, a line for each member.
  return address;
}
