#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/model_shape.hpp"
#include "sim/cost_model/training_layout.hpp"
#include "sim/cost_model/training_software.hpp"

namespace muonwalk::sim {

/// A whole step with Muon beside one with AdamW in the same layout, as predicted.
struct StepComparison {
  TrainingLayout layout;                            ///< of both: the fastest with Muon that fits into memory
  double muon_seconds = 0;                          ///< with the best strategy that has the bits of Muon on one process
  double adamw_seconds = 0;                         ///< with AdamW and ZeRO-1
  char best = ' ';                                  ///< the letter of that strategy
  std::vector<std::pair<char, double>> strategies;  ///< seconds with each one that fits, the fastest first
  bool extrapolated = false;                        ///< a figure of either step was read outside of what was measured

  /// Above 1: the step takes longer with Muon.
  double ratio() const { return muon_seconds / adamw_seconds; }
};

/// All ways to train on dp × tp ranks with one pipeline stage and default_sequences in a batch: micro-batches of 1, 2,
/// 4 and 8 sequences, with and without recomputation, ZeRO-1, experts dealt out over as many DP ranks as divide them.
/// None where dp does not divide the batch.
std::vector<TrainingLayout> step_layouts(const ModelShape& model, const Cluster& cluster, int dp, int tp);

/// Of these layouts the fastest with Muon that fits into memory, its matrices dealt out by work, (d); then every
/// strategy that has the serial step's bits in that layout. Nothing where no layout fits. Throws UsageError where the
/// groups do not lie evenly in the cluster, or TP does not divide a matrix.
std::optional<StepComparison> compare_steps(const ModelShape& model, const Cluster& cluster,
                                            const TrainingSoftware& software,
                                            const std::vector<TrainingLayout>& layouts);

}  // namespace muonwalk::sim
