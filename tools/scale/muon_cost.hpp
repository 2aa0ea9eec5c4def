#pragma once

#include <functional>
#include <vector>

#include "src/optim/plan.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/model_shape.hpp"
#include "tools/scale/term.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// The matrices of Muon that one pipeline stage holds: those of ⌈layers / pp⌉ layers, and of the experts in them a
/// share of 1 / ep. Layer by layer, as a model lists them, with the names "layer0.0", "layer0.1" and so on.
struct StageMatrices {
  std::vector<Parameter> dense;    ///< All DP ranks share them.
  std::vector<Parameter> experts;  ///< The dp / ep ranks of one expert-parallel position share them.
};

/// The matrices of the fullest stage. Throws UsageError where pp is larger than the number of layers, or ep
/// does not divide the experts.
StageMatrices stage_matrices(const ModelShape& model, int pp, int ep = 1);

/// How Muon's step is taken.
struct MuonSetup {
  Strategy strategy = owner_by_work();    ///< One of src/optim/strategies.
  int ns_steps = 5;                       ///< Steps of Newton–Schulz.
  Precision precision = Precision::bf16;  ///< The precision of Newton–Schulz, and of what is gathered for it.
  bool overlaps = false;  ///< Transfers hide behind Newton–Schulz, all but those of the first bucket (lesson 17).
};

/// What Muon adds to a step. That gradients are reduced and weights gathered is not part of it, as AdamW with ZeRO-1
/// does the same; and neither is elementwise work, of which AdamW has no less.
struct MuonCost {
  std::vector<Term> terms;     ///< Seconds: Newton–Schulz, and each kind of transfer.
  double flops = 0;            ///< Newton–Schulz on the rank that has most of it.
  int ns_steps = 5;            ///< The steps of these.
  double bytes_sent = 0;       ///< What this rank sends in these transfers, as a ring sends them.
  double transient_bytes = 0;  ///< The most that it holds at one time beside weights, gradients and momentum.

  double seconds() const { return total(terms); }
};

/// Muon's products over those of the model, as a formula: T · m / B (Keller Jordan, "Muon: An optimizer for hidden
/// layers in neural networks", 2024), times who repeats them.
struct MuonShare {
  int steps = 0;    ///< T, of Newton–Schulz.
  double side = 0;  ///< m: a matrix's smaller side, in the mean over the model's work, or as a square of that work.
  double batch_tokens = 0;  ///< B
  double repeats = 1;       ///< What the busiest rank does, times all ranks, over doing each matrix once.

  double once() const { return steps * side / batch_tokens; }
  double all() const { return once() * repeats; }
};

/// Of a model in a layout, whose busiest rank does `flops` of Newton–Schulz. A token visits only some of the experts,
/// and Newton–Schulz all of them, so they make m larger.
MuonShare muon_share(const ModelShape& model, const TrainingLayout& layout, double flops, int ns_steps = 5);

/// The cost for these matrices on dp × tp ranks of a cluster. `dp` ranks share them, each `dp_stride` ranks after the
/// one before. It is a sum over the plan of one rank, the first of those that compute most (src/optim/plan.hpp). A
/// bucket is full at `bucket` elements. Throws UsageError where TP does not divide a matrix or the strategy can't work.
/// `each` is told of every work on a matrix.
MuonCost muon_cost(const std::vector<Parameter>& matrices, int dp, int tp, int dp_stride, Index bucket,
                   const MuonSetup& setup, const Cluster& cluster, const std::function<void(const Work&)>& each = {});

/// The cost for the fullest stage of a model: first its dense matrices, then its experts.
MuonCost muon_cost(const ModelShape& model, const TrainingLayout& layout, const MuonSetup& setup,
                   const Cluster& cluster);

}  // namespace muonwalk::sim
