#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/scale/step_prediction.hpp"

namespace muonwalk::sim {

/// What to look for: the fastest layouts of a model on this many GPUs.
struct LayoutSearch {
  const ModelShape& model;           ///< The model that is trained.
  const Cluster& cluster;            ///< Where it is trained.
  const TrainingSoftware& software;  ///< The program that trains it.
  int gpus = 0;                      ///< All of them are used.
  int sequences = 0;                 ///< The sequences in a batch; 0: default_sequences.
  bool muon = true;                  ///< Muon for the matrices, or AdamW for all parameters.
};

/// The batch that a search takes unless another one is asked for: 256 sequences, as in the records, and more where a
/// GPU would have less than 2,048 tokens.
int default_sequences(const ModelShape& model, int gpus);

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

/// Whether TP of this size divides the heads of a model, and each matrix that it cuts.
bool can_be_cut(const ModelShape& model, int tp);

/// Whether the groups of a grid lie evenly in the cluster's levels.
bool lies_evenly(const Cluster& cluster, int dp, int tp, int pp);

/// All ways to train on this grid with ZeRO-1 and `sequences` in a batch: micro-batches of 1, 2, 4 and 8 sequences,
/// with and without recomputation, and at least as many micro-batches as 1F1B needs; experts are dealt out over
/// expert_ranks. None where dp does not divide the batch.
std::vector<TrainingLayout> layouts_on(const ModelShape& model, const Cluster& cluster,
                                       const TrainingSoftware& software, int dp, int tp, int pp, int sequences);

/// The layouts on all grids that use every GPU: tp up to 64 that divides the heads, pp up to the number of layers that
/// divides what is left. Throws UsageError, one sentence, where there is none.
std::vector<TrainingLayout> possible_layouts(const LayoutSearch& search);

/// The `most` fastest grids, each with the micro-batches and the recomputation with which it is fastest and fits. With
/// Muon, all layouts are predicted with matrices dealt out by work, (d), and the best grids then with every strategy
/// that has the serial step's bits. Throws as possible_layouts does, and UsageError where no layout fits, which says
/// how much memory the leanest needs.
FoundLayouts find_layouts(const LayoutSearch& search, int most = 10);

/// Why `other` is slower than `best`: the terms by which it loses most, and those by which it gains, in a sentence.
std::string why_slower(const FoundLayout& best, const FoundLayout& other);

}  // namespace muonwalk::sim
