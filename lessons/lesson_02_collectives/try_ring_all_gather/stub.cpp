// fails: where slice 1 belongs
#include <algorithm>

#include "lessons/lesson_02_collectives/try_ring_all_gather/contract.hpp"

using namespace muonwalk;

// Flat is a std::vector<float>.
Flat ring_all_gather(Communicator& group, const Flat& shard) {
  Flat all(group.size() * shard.size());
  std::copy(shard.begin(), shard.end(), all.begin() + group.rank() * shard.size());
  // Your code goes here: n − 1 rounds of group.isend(values, count, peer), group.recv(values, count, peer), and wait().
  return all;
}
