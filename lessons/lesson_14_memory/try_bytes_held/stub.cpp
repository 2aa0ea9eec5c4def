// fails: All of it is zeros
#include "lessons/lesson_14_memory/try_bytes_held/contract.hpp"

using namespace muonwalk;

// Layout has `buffers`; each of them has `parameters`, a DistMeta for each matrix, and `buckets`.
HeldBytes bytes_held(const Layout& layout, int dp_rank, int muon_group) {
  HeldBytes held;
  // Your code goes here.
  return held;
}
