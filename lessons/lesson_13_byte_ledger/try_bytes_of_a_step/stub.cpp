// fails: All of it is zeros
#include "lessons/lesson_13_byte_ledger/try_bytes_of_a_step/contract.hpp"

using namespace muonwalk;

// Layout has `buffers`; each of them has `parameters`, a DistMeta for each matrix, and `buckets`.
// DistMeta says where a matrix lies: its shape, its global_range in the buffer, and its bucket_idx.
Index bytes_of_a_step(const Layout& layout, const Place& place, int gathered) {
  // Your code goes here.
  return 0;
}
