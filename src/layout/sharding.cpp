#include "src/layout/sharding.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include "src/numerics/newton_schulz.hpp"

namespace muonwalk {

double most_over_mean(const std::vector<double>& loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  return sum == 0 ? 1 : *std::max_element(loads.begin(), loads.end()) * static_cast<double>(loads.size()) / sum;
}

double most_over_mean(const std::vector<Index>& loads) {
  return most_over_mean(std::vector<double>(loads.begin(), loads.end()));
}

double Sharding::redundancy(int tp) const {
  return flops_once == 0 ? 1 : std::accumulate(flops.begin(), flops.end(), 0.0) * tp / flops_once;
}

double Sharding::slowdown() const {
  if (flops_once == 0) return 1;
  return *std::max_element(flops.begin(), flops.end()) * static_cast<double>(flops.size()) / flops_once;
}

Sharding sharding_of(const Layout& layout, int steps) {
  const std::size_t dp = static_cast<std::size_t>(layout.grid.dp());
  Sharding sharding;
  sharding.elements.resize(dp);
  sharding.gathered.resize(dp);
  sharding.flops.resize(dp);
  for (const DistMeta& meta : layout.parameters()) {
    const std::vector<int> owners = layout.owners(meta);
    const double work = newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols, steps);
    ++sharding.matrices;
    sharding.cut += owners.size() > 1;
    sharding.flops_once += work;
    for (const int rank : owners) {
      const Index owned = layout.owned_range(meta, rank).size();
      sharding.elements[static_cast<std::size_t>(rank)] += owned;
      sharding.gathered[static_cast<std::size_t>(rank)] += meta.shape.size() - owned;
      sharding.flops[static_cast<std::size_t>(rank)] += work;
    }
  }
  return sharding;
}

Sharding with_experts(Sharding others, const Sharding& experts) {
  const std::size_t dp = others.flops.size(), copies = experts.flops.size();
  if (copies == 0 || dp % copies != 0)
    throw std::invalid_argument("the ranks that hold an expert have to divide the DP ranks");
  const std::size_t ep = dp / copies;
  others.matrices += static_cast<int>(ep) * experts.matrices;
  others.cut += static_cast<int>(ep) * experts.cut;
  others.flops_once += static_cast<double>(ep) * experts.flops_once;
  for (std::size_t rank = 0; rank < dp; ++rank) {
    others.elements[rank] += experts.elements[rank / ep];
    others.gathered[rank] += experts.gathered[rank / ep];
    others.flops[rank] += experts.flops[rank / ep];
  }
  return others;
}

}  // namespace muonwalk
