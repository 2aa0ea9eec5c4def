// fails: right bits, but other calls
#include "lessons/lesson_17_overlap/try_pipelined_gather/contract.hpp"

using namespace muonwalk;

void pipelined_gather(Communicator& dp, const std::vector<Flat>& shards, const std::vector<std::vector<Index>>& counts,
                      const WorkOnBucket& work) {
  for (std::size_t k = 0; k < shards.size(); ++k)
    work(static_cast<int>(k), start_dp_gather(dp, shards[k], counts[k], Precision::fp32).wait());
}
