// fails: does not hold
#include "lessons/lesson_04_dp_gather/try_gather_each_bucket/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
// Buffer has `parameters`, a DistMeta for each matrix, and `buckets`, each a `range` of the buffer.
// DistMeta says where a matrix lies: its shape, its global_range in the buffer, and its bucket_idx.
void gather_each_bucket(Communicator& dp, const Buffer& buffer, const std::vector<Flat>& shards, const UseMatrix& use) {
  // Your code goes here: dp.all_gather(shard) returns the shards of all ranks in rank order.
}
