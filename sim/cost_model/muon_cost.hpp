#pragma once

#include <vector>

#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/model_shape.hpp"
#include "sim/cost_model/prediction.hpp"
#include "src/strategies/strategy.hpp"

namespace muonwalk::sim {

/// The matrices of Muon that one pipeline stage holds: those of ⌈layers / pp⌉ layers, and of the experts in them a
/// share of 1 / ep. Layer by layer, as a model lists them, with the names "layer0.0", "layer0.1" and so on.
struct StageMatrices {
  std::vector<Parameter> dense;    ///< what all DP ranks share
  std::vector<Parameter> experts;  ///< what the ranks of one expert-parallel position share: dp / ep of them
};

/// Those of the stage that holds most. Throws UsageError where pp is larger than the number of layers, or ep does not
/// divide the experts.
StageMatrices stage_matrices(const ModelShape& model, int pp, int ep = 1);

/// How Muon's step is taken.
struct MuonWay {
  Strategy strategy = owner_by_work();    ///< one of src/strategies
  int ns_steps = 5;                       ///< of Newton–Schulz
  Precision precision = Precision::bf16;  ///< of Newton–Schulz, and of what is gathered for it
  /// Transfers hide behind Newton–Schulz, all but those of the first bucket (lesson 17).
  bool overlaps = false;
};

/// What Muon does in a step besides what AdamW with ZeRO-1 does too: it reduces the same gradients and gathers the same
/// weights, and its elementwise work is not more.
struct MuonCost {
  std::vector<Term> terms;     ///< seconds: Newton–Schulz, and each kind of transfer
  double flops = 0;            ///< of Newton–Schulz on the rank that has most of it
  double mean_flops = 0;       ///< over all DP ranks
  double bytes_sent = 0;       ///< by that rank, for these transfers, as a ring sends them
  double kept_bytes = 0;       ///< momentum, on that rank
  double transient_bytes = 0;  ///< the most at one time beside weights, gradients and momentum

  /// Of the terms.
  double seconds() const { return total(terms); }
};

/// The cost for these matrices on dp × tp ranks of a cluster, `dp` being that of the ranks that share them, with
/// neighbours `dp_stride` ranks apart. It is a sum over the plan of one rank: of those that compute most, the first
/// (src/optim/plan.hpp). A bucket is full at `bucket` elements. Throws UsageError where TP does not divide a matrix or
/// the strategy can't work.
MuonCost muon_cost(const std::vector<Parameter>& matrices, int dp, int tp, int dp_stride, Index bucket,
                   const MuonWay& way, const Cluster& cluster);

/// The same for the stage of a model that holds most: its dense matrices, and its experts, one after the other.
MuonCost muon_cost(const ModelShape& model, int dp, int tp, int pp, int ep, const MuonWay& way, const Cluster& cluster);

}  // namespace muonwalk::sim
