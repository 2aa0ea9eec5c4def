// fails: right bits, but other calls
#include "lessons/lesson_17_overlap/try_pipelined_gather/contract.hpp"

using namespace muonwalk;

void pipelined_gather(Communicator& dp, const std::vector<Flat>& shards, const std::vector<std::vector<Index>>& counts,
                      const WorkOnBucket& work) {
  PostedGather next = start_dp_gather(dp, shards[0], counts[0], Precision::fp32);
  for (std::size_t k = 0; k < shards.size(); ++k) {
    const Flat bucket = next.wait();
    if (k + 1 < shards.size()) next = start_dp_gather(dp, shards[k + 1], counts[k + 1], Precision::fp32);
    work(static_cast<int>(k), bucket);
  }
}
