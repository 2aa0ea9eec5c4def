#include <utility>

#include "lessons/lesson_17_overlap/try_pipelined_gather/contract.hpp"

using namespace muonwalk;

// The bucket that `wait` returns is gone when `work` has returned, so two are held at most: it and the next one.
void pipelined_gather(Communicator& dp, const std::vector<Flat>& shards, const std::vector<std::vector<Index>>& counts,
                      const WorkOnBucket& work) {
  PostedGather next = start_dp_gather(dp, shards[0], counts[0], Precision::fp32);
  for (std::size_t k = 0; k < shards.size(); ++k) {
    PostedGather current = std::move(next);
    if (k + 1 < shards.size()) next = start_dp_gather(dp, shards[k + 1], counts[k + 1], Precision::fp32);
    work(static_cast<int>(k), current.wait());
  }
}
