// fails: right bits, but too many bytes
#include <numeric>

#include "lessons/lesson_09_full_step/try_sum_for_my_shard/contract.hpp"

using namespace muonwalk;

Flat sum_for_my_shard(Communicator& dp, const Flat& gradients, const std::vector<Index>& counts) {
  const Flat sums = dp.all_reduce(gradients);
  const Index begin = std::accumulate(counts.begin(), counts.begin() + dp.rank(), Index{0});
  return Flat(sums.begin() + begin, sums.begin() + begin + counts[dp.rank()]);
}
