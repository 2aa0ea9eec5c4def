// fails: cut off, not rounded
#include <cstring>
#include <numeric>

#include "lessons/lesson_14_memory/try_refresh_weights/contract.hpp"

using namespace muonwalk;

void refresh_weights(Communicator& dp, const Flat& masters, const std::vector<Index>& counts,
                     FlatOf<bfloat16>& weights) {
  bfloat16* mine = weights.data() + std::accumulate(counts.begin(), counts.begin() + dp.rank(), Index{0});
  for (std::size_t i = 0; i < masters.size(); ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, &masters[i], sizeof bits);
    mine[i].bits = static_cast<std::uint16_t>(bits >> 16);
  }
  dp.all_gather_v(mine, counts, weights.data());
}
