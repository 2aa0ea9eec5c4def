// fails: 4 times too small
#include "lessons/lesson_09_full_step/try_sum_for_my_shard/contract.hpp"

using namespace muonwalk;

Flat sum_for_my_shard(Communicator& dp, const Flat& gradients, const std::vector<Index>& counts) {
  Flat sum(counts[dp.rank()]);
  dp.reduce_scatter_v(gradients.data(), counts, sum.data());
  for (float& value : sum) value /= static_cast<float>(dp.size());
  return sum;
}
