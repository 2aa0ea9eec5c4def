#pragma once

#include <vector>

#include "src/layout/parameter.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/model_shape.hpp"

namespace muonwalk::sim {

/// What the optimizer's step of Muon on dp × tp ranks sends, beside what that of AdamW sends on as many with data
/// parallelism alone: the comparison of Jen Wei, "Distributed Muon: Field Notes & Reproducibility Artifacts" (2025),
/// with nothing left out (lesson 13). Both are about the matrices that Muon takes. What tensor parallelism sends for
/// activations is not part of it, and only Muon's side has tensor parallelism.
struct CommunicationComparison {
  double muon_seconds = 0;    ///< Transfers of the rank that has most of Newton–Schulz; nothing hides behind work.
  double adamw_seconds = 0;   ///< Transfers of any rank: all are alike.
  double muon_bytes = 0;      ///< What that rank of Muon's sends, each collective at its least.
  double adamw_bytes = 0;     ///< What any rank of AdamW's sends.
  bool extrapolated = false;  ///< A bandwidth was read outside of what was measured.

  /// Below 1, Muon's step sends for less time.
  double ratio() const { return muon_seconds / adamw_seconds; }
  double bytes_ratio() const { return muon_bytes / adamw_bytes; }
};

/// Muon: reduce-scatter of float32 gradients and all-gather of float32 weights over dp, bucket by bucket, and the
/// gathers over dp and tp that strategy (a) needs, in bf16 (muon_cost.hpp). AdamW: all-reduce of float32 gradients over
/// dp · tp ranks. All of it goes level by level, as collective_seconds has it. A bucket is full at `muon_bucket` and
/// `adamw_bucket` elements, 0: one for all. Throws UsageError where TP does not divide a matrix, where the groups do
/// not lie evenly in the cluster, and for a single rank, which sends nothing.
CommunicationComparison compare_communication(const std::vector<Parameter>& matrices, int dp, int tp, Index muon_bucket,
                                              Index adamw_bucket, const Cluster& cluster);

/// The comparison for all matrices of a model that Muon takes, without pipeline stages or expert-parallel ranks, in
/// Megatron-LM's buckets.
CommunicationComparison compare_communication(const ModelShape& model, int dp, int tp, const Cluster& cluster);

}  // namespace muonwalk::sim
