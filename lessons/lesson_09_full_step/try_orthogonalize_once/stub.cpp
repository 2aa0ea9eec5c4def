// fails: All of it is zeros
#include <algorithm>

#include "lessons/lesson_09_full_step/try_orthogonalize_once/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
// Layout has `buffers`; each of them has `parameters`, a DistMeta for each matrix, and `buckets`.
// DistMeta says where a matrix lies: its shape, its global_range in the buffer, and its bucket_idx.
Flat orthogonalize_once(Communicator& dp, const Layout& layout, const std::vector<int>& owners, const Flat& shard) {
  Flat result(shard.size());
  // Your code goes here: dp.send(values, count, peer), dp.recv(values, count, peer), newton_schulz(matrix).
  return result;
}
