#include <numeric>

#include "lessons/lesson_11_zero1_adamw/try_adamw_over_dp/contract.hpp"

using namespace muonwalk;

void adamw_over_dp(Communicator& dp, Flat& weights, const Flat& gradients, const std::vector<Index>& counts,
                   Flat& first_moment, Flat& second_moment, int step, const AdamWSettings& settings) {
  Flat sum(counts[dp.rank()]);
  dp.reduce_scatter_v(gradients.data(), counts, sum.data());

  float* mine = weights.data() + std::accumulate(counts.begin(), counts.begin() + dp.rank(), Index{0});
  adamw(mine, sum.data(), first_moment.data(), second_moment.data(), counts[dp.rank()], step, settings);

  dp.all_gather_v(mine, counts, weights.data());
}
