#pragma once

#include <vector>

#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {

/// What a strategy makes the ranks of a grid do, send and hold in a step, of all that is in their plans: also the
/// reduce-scatter of gradients and the all-gather of weights, which are the same in most of them. Where a strategy
/// takes several steps until it does the same again (Strategy::period), a figure of a step is the mean over these, and
/// memory is that of the step that needs most.
struct StrategyCost {
  double most_bytes_sent = 0;     ///< What the rank sends that sends most, headers not counted.
  double mean_bytes_sent = 0;     ///< over all ranks, which is also what a rank receives in the mean
  double most_messages_sent = 0;  ///< What the rank sends that sends most messages, empty ones included.
  /// Of these bytes and messages, those over tp, of the rank that sends most over tp.
  /// @{
  double most_tp_bytes_sent = 0;
  double most_tp_messages_sent = 0;
  /// @}
  double most_flops = 0;  ///< What the rank computes that computes most.
  double mean_flops = 0;  ///< over all ranks
  /// Newton–Schulz of all ranks over that of one process, which does each matrix once and whole; all that a plan
  /// computes counts as such, but momentum and the new weights. Below 1 where blocks stay alone; 1 without matrices.
  double redundancy = 1;
  Index most_kept_bytes = 0;       ///< what the optimizer keeps between steps besides the weights: momentum
  Index most_transient_bytes = 0;  ///< the most at one time beside weights, gradients and what is kept
};

/// The cost of a strategy where these parameters are laid out for `grid` in buckets of `bucket` elements (0: one for
/// all). Nothing runs: it makes the plan of one rank after the other, one of them in memory at a time, so it can be
/// asked for models and clusters that nobody has at hand. The grid has one pipeline stage; a model with several is a
/// call for each. Throws UsageError where the strategy can't work with these parameters or settings, and
/// std::invalid_argument where pp is not 1.
///
/// Most ranks it need not ask. A layout is the same on all TP ranks, and slices are equally large, so the ranks of a TP
/// group have the same plan, and TP rank 0 speaks for them. Only what an all-reduce over TP sends differs, by a few
/// elements, and only where TP does not divide its elements; there, every rank's is counted.
StrategyCost strategy_cost(const Strategy& strategy, const std::vector<Parameter>& parameters, const Grid& grid,
                           Index bucket, const MuonSettings& settings);

}  // namespace muonwalk
