// fails: right bits, but too many bytes
#include <algorithm>

#include "lessons/lesson_02_collectives/try_ring_all_gather/contract.hpp"

using namespace muonwalk;

Flat ring_all_gather(Communicator& group, const Flat& shard) {
  const int n = group.size(), me = group.rank();
  const Index count = shard.size();
  Flat all(n * count);
  std::copy(shard.begin(), shard.end(), all.begin() + me * count);
  Flat other(n * count);
  for (int round = 0; round < n - 1; ++round) {
    Transfer sent = group.isend(all.data(), n * count, (me + 1) % n);
    group.recv(other.data(), n * count, (me - 1 + n) % n);
    sent.wait();
    const int arrives = (me - round - 1 + n) % n;
    std::copy(&other[arrives * count], &other[arrives * count] + count, &all[arrives * count]);
  }
  return all;
}
