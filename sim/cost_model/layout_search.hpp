#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cost_model/step_prediction.hpp"

namespace muonwalk::sim {

/// The sequences in a micro-batch that are tried.
constexpr int kMicroBatches[] = {1, 2, 4, 8};

/// What to look for: the fastest layouts of a model on this many GPUs.
struct LayoutSearch {
  const ModelShape& model;           ///< what is trained
  const Cluster& cluster;            ///< on what
  const TrainingSoftware& software;  ///< by which program
  int gpus = 0;                      ///< of the cluster, all of which are used
  int sequences = 0;                 ///< in a batch; 0: default_sequences
  bool muon = true;                  ///< false: AdamW for all parameters
};

/// The batch that a search takes unless it is told: 256 sequences, as in the records, and more where that would leave
/// GPUs without work: 2,048 tokens per GPU.
int default_sequences(const ModelShape& model, int gpus);

/// A layout with what it comes to.
struct FoundLayout {
  TrainingLayout layout;             ///< which one
  std::optional<Strategy> strategy;  ///< how Muon is distributed; nothing: AdamW alone
  StepPrediction prediction;         ///< of a step
};

/// What a search finds.
struct FoundLayouts {
  std::vector<FoundLayout> best;  ///< of grids that fit, the fastest first
  int tried = 0;                  ///< layouts that were predicted
  int fit = 0;                    ///< those of them that fit into memory
};

/// The largest expert-parallel group, among dp ranks that are tp apart: experts are dealt out as far as the DP ranks
/// divide them and their groups lie evenly in the cluster; 1 for a model without experts.
int expert_ranks(const ModelShape& model, const Cluster& cluster, int dp, int tp);

/// All grids that use every GPU, with micro-batches of 1, 2, 4 and 8 sequences, with and without recomputation: tp up
/// to 64 that divides the heads, pp up to the number of layers that divides what is left, dp that divides the batch,
/// and at least as many micro-batches as 1F1B needs. ZeRO-1. Experts are dealt out over as many DP ranks as divide
/// them and dp and lie evenly in the cluster. Throws UsageError, one sentence, where there is none.
std::vector<TrainingLayout> possible_layouts(const LayoutSearch& search);

/// The `most` fastest grids, each with the micro-batches and the recomputation with which it is fastest and fits. With
/// Muon, all layouts are predicted with matrices dealt out by work, (d), and the best grids then with every strategy
/// that has the serial step's bits. Throws as possible_layouts does, and UsageError where no layout fits, which says
/// how much memory the leanest needs.
FoundLayouts find_layouts(const LayoutSearch& search, int most = 10);

/// Why `other` is slower than `best`: the terms by which it loses most, and those by which it gains, in a sentence.
std::string why_slower(const FoundLayout& best, const FoundLayout& other);

}  // namespace muonwalk::sim
