#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/world/options.hpp"
#include "src/strategies/strategy.hpp"
#include "src/train/reference_run.hpp"

namespace muonwalk::sim {

/// Random weights and gradients, of which each DP rank's are the sum of four micro-batches.
class MicroBatches : public RandomTraining {
 public:
  /// As RandomTraining.
  MicroBatches(std::vector<Parameter> parameters, int steps, std::uint64_t seed)
      : RandomTraining(std::move(parameters), steps, seed) {}
  int leaves_per_rank(int) const override { return 4; }
  /// The gradients of this rank in a step, one set of all its TP slices; or, `apart`, one set for each micro-batch.
  std::vector<std::vector<Matrix>> summed(int step, const Seat& seat, const std::vector<NamedMatrix>& held,
                                          bool apart) const;
};

/// "(a) gather everything", and "(a) after step 1" for the step with the number 0.
/// @{
std::string title(const Strategy& strategy);
std::string title(const Strategy& strategy, int step);
/// @}

/// All strategies on one model, and what they are held to. Each takes two steps, from the same weights and with the
/// same gradients.
class SideBySide {
 public:
  /// Parameters are laid out in buckets of `bucket` elements, on the grid of the seat. Throws as layouts and strategies
  /// do that can't work there.
  SideBySide(std::vector<Parameter> parameters, Index bucket, const Seat& seat);

  /// Where weights and gradients come from.
  const MicroBatches& data() const { return data_; }
  /// The optimizers' settings in a seat.
  static MuonSettings settings(const Seat& seat) { return muon_settings(seat.precision, seat.threads, seat.products); }
  /// The layout of a strategy.
  Layout layout(const Strategy& strategy, const Grid& grid) const {
    return strategy.lay_out(data_.parameters(), grid, bucket_);
  }

  /// What the rank in a seat should hold after each step of each strategy, with the names of title: (a) to (f) what
  /// Muon comes to on one process, (g) and (h) what one process comes to that adds, or works in, the same pieces.
  std::vector<NamedMatrix> expected_weights(const Seat& seat) const;
  /// The plans of the two steps of a strategy.
  std::vector<Plan> plans(const Strategy& strategy, const Seat& seat) const;
  /// What the rank in a seat should count in each strategy (StepCounts), 1 × 5 each.
  std::vector<NamedMatrix> expected_counts(const Seat& seat) const;
  /// What it should send in all of them.
  Ledger ledger(const Seat& seat) const;

 private:
  MicroBatches data_;
  Index bucket_;
  std::vector<std::shared_ptr<ReferenceRun>> references_;  // of each strategy; one for all that are Muon
};

}  // namespace muonwalk::sim
