// fails: lies where slice
#include <algorithm>

#include "lessons/lesson_02_collectives/try_ring_all_gather/contract.hpp"

using namespace muonwalk;

Flat ring_all_gather(Communicator& group, const Flat& shard) {
  const int n = group.size(), me = group.rank();
  const Index count = shard.size();
  Flat all(n * count);
  std::copy(shard.begin(), shard.end(), all.begin() + me * count);
  for (int round = 0; round < n - 1; ++round) {
    const int arrives = (me - round - 1 + n) % n;
    Transfer sent = group.isend(shard.data(), count, (me + 1) % n);
    group.recv(&all[arrives * count], count, (me - 1 + n) % n);
    sent.wait();
  }
  return all;
}
