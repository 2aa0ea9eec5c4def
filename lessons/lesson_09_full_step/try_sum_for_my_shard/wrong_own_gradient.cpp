// fails: It is the gradient of rank 0 alone
#include <numeric>

#include "lessons/lesson_09_full_step/try_sum_for_my_shard/contract.hpp"

using namespace muonwalk;

Flat sum_for_my_shard(Communicator& dp, const Flat& gradients, const std::vector<Index>& counts) {
  const Index begin = std::accumulate(counts.begin(), counts.begin() + dp.rank(), Index{0});
  return Flat(gradients.begin() + begin, gradients.begin() + begin + counts[dp.rank()]);
}
