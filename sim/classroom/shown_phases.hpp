#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/ranks/rank.hpp"
#include "src/optim/full_step.hpp"

namespace muonwalk::sim {

/// Shows what a rank keeps between steps: whole buckets of weights and its DP shards of the momentum. Only where the
/// step is recorded; a quiet step prints nothing.
void show_state(Rank& rank, const Layout& layout, const MuonState& state);

/// Follows full_step on one rank: takes the time of each phase and, where the step is recorded, shows what the rank
/// holds at its end. These are names, shapes and ranges as the layout has them; values are kept of what is handed over
/// and is small enough for a recording, so that it costs nothing at real sizes. What it is given must outlive it.
class ShownPhases {
 public:
  /// Shows the gradients that the step begins with.
  ShownPhases(Rank& rank, const Layout& layout) : ShownPhases(rank, layout, nullptr, nullptr) {}
  /// Shows the gradients with their values, too; those of the momentum are taken out of `state`.
  ShownPhases(Rank& rank, const Layout& layout, const Buckets& gradients, const MuonState& state)
      : ShownPhases(rank, layout, &gradients, &state) {}

  /// As a StepObserver. A phase that comes once per parameter or bucket is shown when it comes first, for all of them.
  void operator()(Phase phase, const DistMeta* parameter = nullptr);

  /// The values that the phase which began last has made: what it shows of a bucket, or all of the bucket, or what it
  /// shows of the parameter. Throws std::logic_error where there are as many as neither.
  /// @{
  void made(const Flat& values) { made(values.data(), static_cast<Index>(values.size())); }
  void made(const Matrix& values) { made(values.data(), values.size()); }
  /// @}

 private:
  // What waits for its values; where those of a bucket of which it is a part begin, and how large that bucket is.
  using Waiting = std::tuple<Shown*, Index, Index>;

  ShownPhases(Rank& rank, const Layout& layout, const Buckets* gradients, const MuonState* state);
  void made(const float* values, Index count);
  void show_bucket(Phase phase, int b, int k, int number);
  void show_parameter(Phase phase, const DistMeta& meta, const std::string& number);

  Rank* rank_;
  const Layout* layout_;
  const MuonState* state_;
  std::set<Phase> shown_;
  std::map<std::tuple<Phase, std::string, int>, Waiting> waiting_;  // by parameter, or by bucket where that is ""
  std::vector<std::pair<Shown*, const Flat*>> momentum_;            // by bucket; its values once there is an update
  Phase phase_;                                                     // that began last
  std::string parameter_;                                           // that it is about; "": about a bucket
  int bucket_ = -1;  // that is worked on: one after the other, counted through all buffers
};

}  // namespace muonwalk::sim
