// fails: right bits, but too many bytes
#include <numeric>

#include "lessons/lesson_09_full_step/try_sum_for_my_shard/contract.hpp"

using namespace muonwalk;

Flat sum_for_my_shard(Communicator& dp, const Flat& gradients, const std::vector<Index>& counts) {
  std::vector<Flat> level;
  const Flat all = dp.all_gather(gradients);
  const Index begin = std::accumulate(counts.begin(), counts.begin() + dp.rank(), Index{0});
  for (int r = 0; r < dp.size(); ++r) {
    const auto first = all.begin() + r * static_cast<Index>(gradients.size()) + begin;
    level.emplace_back(first, first + counts[dp.rank()]);
  }
  for (std::size_t step = 1; step < level.size(); step *= 2)
    for (std::size_t r = 0; r + step < level.size(); r += 2 * step)
      for (std::size_t i = 0; i < level[r].size(); ++i) level[r][i] += level[r + step][i];
  return level[0];
}
