#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tools/scale/term.hpp"
#include "tools/scale/training_run.hpp"

namespace muonwalk::sim {

namespace terms {
/// A kind of term that only a run of a file has; its name says what it stands for.
/// @{
inline constexpr TermKind newton_schulz_elementwise{"Newton–Schulz, elementwise", TermKind::at_the_end};
inline constexpr TermKind muon_elementwise{"Muon's momenta and new weights", TermKind::at_the_end};
inline constexpr TermKind shard_traffic{"weights gathered, gradients scattered, not hidden", TermKind::at_the_end};
inline constexpr TermKind replica_sum{"gradients summed over replicas, not hidden", TermKind::at_the_end};
inline constexpr TermKind muon_all_reduce{"Muon's all-reduce", TermKind::at_the_end, CollectiveKind::all_reduce};
inline constexpr TermKind muon_all_gather{"Muon's all-gathers", TermKind::at_the_end, CollectiveKind::all_gather};
inline constexpr TermKind muon_broadcast{"Muon's broadcasts", TermKind::at_the_end, CollectiveKind::broadcast};
inline constexpr TermKind muon_all_to_all{"Muon's all-to-alls", TermKind::at_the_end, CollectiveKind::all_to_all};
inline constexpr TermKind parameters_and_state{"weights, gradients, optimizer's state", TermKind::kept};
/// @}
}  // namespace terms

/// A step of a run with one of the two optimizers.
struct RunStep {
  std::vector<Term> seconds;  ///< One after the other, forward and backward included.
  std::vector<Term> bytes;    ///< Memory of the fullest rank.
  double optimizer = 0;       ///< Seconds of the optimizer itself, with what it sends.
  double newton_schulz = 0;   ///< Of these, products and elementwise work of Newton–Schulz.

  double step() const { return total(seconds); }
  double memory() const { return total(bytes); }
};

/// What Muon adds to a step of AdamW, with both steps.
struct RunAnswer {
  RunStep adamw, muon;
  /// What one rank sends in Muon's own transfers, by collective; gradients and weights move as with AdamW.
  std::map<std::string, double> sent;
  double least_side = 0;                      ///< A product of square matrices with smaller sides waits for its launch.
  double waiting_matrices = 0, matrices = 0;  ///< Of Muon's, how many have such a product, and how many there are.
  double jordan = 0;                          ///< T·m/B, Keller Jordan's bound for what Newton–Schulz adds.

  double extra() const { return muon.step() - adamw.step(); }
  double extra_share() const { return extra() / adamw.step(); }
};

/// The prediction for a run, on the rank that has most to do. Forward and backward are those of StepQuestion; a matrix
/// takes the sum over the kernels of its Newton–Schulz, each of which takes what its FLOPs or bytes do at the GPU's
/// rates, and never less than a launch. Throws UsageError where a group of ranks does not lie evenly in the cluster, or
/// a strategy can't work.
RunAnswer predict_run(const TrainingRun& run);

/// The band in which nine of ten runs are expected: what Muon adds in seconds, and as a share of AdamW's step.
struct RunBand {
  double extra = 0, share = 0;
};
/// Its lower and its upper end.
std::pair<RunBand, RunBand> band_of(const TrainingRun& run);

}  // namespace muonwalk::sim
