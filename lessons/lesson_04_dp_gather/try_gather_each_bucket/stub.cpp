// fails: does not hold
#include "lessons/lesson_04_dp_gather/try_gather_each_bucket/contract.hpp"

using namespace muonwalk;

void gather_each_bucket(Communicator& dp, const Buffer& buffer, const std::vector<Flat>& shards, const UseMatrix& use) {
  // Your code goes here: dp.all_gather(shard) returns the shards of all ranks in rank order.
}
