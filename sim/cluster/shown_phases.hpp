#pragma once

#include <set>

#include "sim/world/rank.hpp"
#include "src/optim/full_step.hpp"

namespace muonwalk::sim {

/// Shows what a rank keeps between steps: whole buckets of weights and its DP shards of the momentum. Only where the
/// step is recorded; a quiet step prints nothing.
void show_state(Rank& rank, const Layout& layout, const MuonState& state);

/// Follows full_step on one rank: takes the time of each phase and, where the step is recorded, shows what the rank
/// holds at its end. These are names, shapes and ranges as the layout has them, without values, so that it costs
/// nothing at real sizes. `rank` and `layout` must outlive it.
class ShownPhases {
 public:
  /// Shows the gradients that the step begins with.
  ShownPhases(Rank& rank, const Layout& layout);
  /// As a StepObserver. A phase that comes once per parameter or bucket is shown when it comes first, for all of them.
  void operator()(Phase phase, const DistMeta* parameter = nullptr);

 private:
  void show_bucket(Phase phase, int b, int k, const std::string& number);
  void show_parameter(Phase phase, const DistMeta& meta, const std::string& number);

  Rank* rank_;
  const Layout* layout_;
  std::set<Phase> shown_;
};

}  // namespace muonwalk::sim
