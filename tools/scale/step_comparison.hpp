#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "tools/scale/cluster.hpp"
#include "tools/scale/model_shape.hpp"
#include "tools/scale/training_layout.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// A whole step with Muon beside one with AdamW in the same layout, as predicted.
struct StepComparison {
  TrainingLayout layout;                            ///< The fastest with Muon that fits into memory, for both.
  double muon_seconds = 0;                          ///< The best strategy with the bits of Muon on one process.
  double adamw_seconds = 0;                         ///< AdamW with ZeRO-1.
  char best = ' ';                                  ///< The letter of the best strategy.
  std::vector<std::pair<char, double>> strategies;  ///< Seconds with each one that fits, the fastest first.
  bool extrapolated = false;                        ///< A figure of either step lies outside of what was measured.

  /// Above 1: the step takes longer with Muon.
  double ratio() const { return muon_seconds / adamw_seconds; }
};

/// All ways to train on dp × tp ranks with one pipeline stage, ZeRO-1 and default_sequences in a batch
/// (with_every_batch), experts dealt out over as many DP ranks as divide them and lie evenly in the cluster.
std::vector<TrainingLayout> step_layouts(const ModelShape& model, const Cluster& cluster,
                                         const TrainingSoftware& software, int dp, int tp);

/// Of these layouts the fastest with Muon that fits into memory, its matrices dealt out by work, (d); then every
/// strategy that has the serial step's bits in that layout. Nothing where no layout fits. Throws UsageError where the
/// groups do not lie evenly in the cluster, or TP does not divide a matrix.
std::optional<StepComparison> compare_steps(const ModelShape& model, const Cluster& cluster,
                                            const TrainingSoftware& software,
                                            const std::vector<TrainingLayout>& layouts);

}  // namespace muonwalk::sim
