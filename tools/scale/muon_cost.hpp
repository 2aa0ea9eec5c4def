#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "src/optim/plan.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/collective_time.hpp"
#include "tools/scale/model_shape.hpp"
#include "tools/scale/term.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// What is counted in the public source of nanotron (models/llama.py, parallel/tensor_parallel/functional.py), kernel
/// by kernel: bytes that one training step reads, writes and keeps. And shares of a peak that others have measured.
/// @{

/// Bytes read and written per token and channel by what is not a product, forward and backward: norms, residuals,
/// copies of queries, keys and values, rotary embedding; and, per channel of the feed-forward half, SwiGLU.
constexpr double kWidthTraffic = 160, kHiddenTraffic = 34;
/// Per score, where attention is not fused: scale and mask, softmax, dropout, in bf16, forward and backward.
constexpr double kScoreTraffic = 22;
/// Per logit: cast to fp32, largest, difference, exponential, sum, quotient, and their gradient.
constexpr double kLogitTraffic = 56;
/// Per parameter and micro-batch: a bf16 gradient is read and added to an fp32 one.
constexpr double kAccumulationTraffic = 12;
/// Per parameter and step, of AdamW: gradients (norm, clipping, clearing), and states, of which ZeRO-1 has a share.
constexpr double kGradientTraffic = 16, kStateTraffic = 30;

/// Bytes kept per parameter: bf16 weight; fp32 gradient; fp32 copy of the weight, and two moments.
constexpr double kWeightBytes = 2, kGradientBytes = 4, kMasterBytes = 4, kMomentBytes = 8;
/// Bytes kept per token and layer, per channel of the width and of the feed-forward half: two norms' fp32 inputs (8),
/// queries, keys, values and attention's output (8), two inputs of products (4); gate, up and their products (8).
constexpr double kWidthActivation = 20, kHiddenActivation = 8;
/// Those two inputs of products, where they are gathered from all TP ranks.
constexpr double kGatheredActivation = 4;
/// Bytes per logit at the peak: bf16, fp32, its softmax, their gradient.
constexpr double kLogitBytes = 14, kBf16Bytes = 2;
/// Bytes per token and channel of the width while one layer is worked on: four gathered tensors in bf16.
constexpr double kWorkingBytes = 8;

/// A TP group's all-gathers and reduce-scatters per layer: two each, forward and backward; and two all-gathers more
/// where gathered inputs are not kept.
constexpr int kTpCollectives = 8, kRegathered = 2;

/// FlashAttention-2 reaches 35 % of an H100's peak (Shah et al., "FlashAttention-3", 2024) on the half of the square
/// that a causal mask leaves; over the whole square that is twice as much.
constexpr double kAttentionEfficiency = 0.70;
/// A copy reaches this share of a GPU's bandwidth (BabelStream on A100 and H100).
constexpr double kMemoryEfficiency = 0.9;
/// @}

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
  Strategy strategy = owner_by_work();  ///< One of src/optim/strategies.
  /// Of these count the steps of Newton–Schulz, and its precision, which is that of what is gathered for it.
  MuonSettings settings = muon_settings(Precision::bf16, 1, Products::eigen);
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

/// What a call of a plan takes on a cluster, and what it makes its rank send, as a ring sends it.
struct CallCost {
  CollectiveSeconds seconds;
  double bytes_sent = 0;
};

/// The cost of a call on a grid whose dp ranks are `dp_stride` ranks apart. Nothing where the rank is alone in the
/// group, and for what is posted or waited for: of a message, it counts that it comes in.
std::optional<CallCost> call_cost(const Call& call, const Grid& grid, int dp_stride, const Cluster& cluster);

/// A step's plan of the first of those ranks of a layout that compute most.
Plan busiest_plan(const MuonSetup& setup, const Layout& layout, int step = 0);

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
