#include "src/optim/rms_monitor.hpp"

#include <cmath>

#include "src/numerics/tree_sum.hpp"

namespace muonwalk {

RmsMonitor::RmsMonitor(const std::vector<Parameter>& parameters) : squares_(2 * parameters.size()) {
  for (const Parameter& parameter : parameters) sizes_.push_back(static_cast<double>(parameter.shape.size()));
}

void RmsMonitor::add(const DistMeta& meta, const Place& place, const float* weights, Index count,
                     double squares_of_update) {
  if (meta.tp_split_dim == SplitDim::none && place.tp != 0) return;
  const auto at = 2 * static_cast<std::size_t>(meta.parameter);
  squares_.at(at) += pairwise_sum_of_squares(weights, count);
  squares_.at(at + 1) += squares_of_update;
}

std::vector<ParameterRms> RmsMonitor::reduce(Communicator& ranks) {
  Flat sums(squares_.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(squares_[i]);
  ranks.all_reduce(sums.data(), static_cast<Index>(sums.size()));
  std::vector<ParameterRms> all;
  for (std::size_t p = 0; p < sizes_.size(); ++p)
    all.push_back({std::sqrt(sums[2 * p] / sizes_[p]), std::sqrt(sums[2 * p + 1] / sizes_[p])});
  squares_.assign(squares_.size(), 0);
  return all;
}

}  // namespace muonwalk
