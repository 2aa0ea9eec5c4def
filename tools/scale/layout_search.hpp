#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/scale/training_time.hpp"

namespace muonwalk::sim {

/// How many tokens a step takes.
struct Batch {
  Index tokens = 0;   ///< 0: those with which somebody trained a model of this size (ModelShape::batch_tokens).
  Index per_gpu = 0;  ///< Above 0: a batch that grows with the GPUs, so many for each, and at least `tokens`.
};

/// The sequences of such a batch on so many GPUs. Those that were not asked for to the token are as many more as the
/// odd factor of the number of GPUs takes to be dealt out evenly. Throws UsageError for tokens that are not a whole
/// number of sequences, or more than 2^24 of these.
int batch_sequences(const ModelShape& model, int gpus, const Batch& batch);

/// "4,194,304 tokens per step (1,024 sequences of 4,096), the default, which LLaMA has (…)"; of another, what that is.
std::string batch_text(const ModelShape& model, std::int64_t sequences);

/// What to look for: the fastest layouts of a model on this many GPUs.
struct LayoutSearch {
  const ModelShape& model;           ///< The model that is trained.
  const Cluster& cluster;            ///< Where it is trained.
  const TrainingSoftware& software;  ///< The program that trains it.
  int gpus = 0;                      ///< All of them are used.
  Batch batch = {};                  ///< The tokens of a step.
  bool muon = true;                  ///< Muon for the matrices, or AdamW for all parameters.
};

/// A layout, and what is predicted for it.
struct FoundLayout {
  TrainingLayout layout;
  std::optional<Strategy> strategy;  ///< How Muon is distributed; nothing: AdamW alone.
  StepPrediction prediction;
};

/// What a search finds.
struct FoundLayouts {
  std::vector<FoundLayout> best;  ///< The fastest layout of each grid that fits, the fastest first.
  int tried = 0;                  ///< How many layouts were predicted.
  int fit = 0;                    ///< How many of them fit into memory.
};

/// The largest expert-parallel group, among dp ranks that are tp apart: experts are dealt out as far as the DP ranks
/// divide them and their groups lie evenly in the cluster; 1 for a model without experts.
int expert_ranks(const ModelShape& model, const Cluster& cluster, int dp, int tp);

/// The layouts with ZeRO-1 on all grids that use every GPU: tp up to 64 that divides the heads and each matrix that it
/// cuts, pp up to the number of layers that divides what is left. On each grid: micro-batches of 1, 2, 4 and 8
/// sequences, with and without recomputation, and at least as many micro-batches as 1F1B needs. Throws UsageError, one
/// sentence, where there is none.
std::vector<TrainingLayout> possible_layouts(const LayoutSearch& search);

/// The `most` fastest grids, each with the micro-batches and the recomputation with which it is fastest and fits. With
/// Muon, all layouts are predicted with matrices dealt out by work, (d), and the best grids then with every strategy
/// that has the serial step's bits. Throws as possible_layouts does, and UsageError where no layout fits, which says
/// how much memory the leanest needs.
FoundLayouts find_layouts(const LayoutSearch& search, int most = 10);

/// Why `other` is slower than `best`: the terms by which it loses most, and those by which it gains, in a sentence.
std::string why_slower(const FoundLayout& best, const FoundLayout& other);

}  // namespace muonwalk::sim
