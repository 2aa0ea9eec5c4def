#pragma once

#include "src/optim/buckets.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk {

// Mixed precision, as Megatron-LM trains in it: the layers compute with weights in bfloat16, which every DP rank has
// whole. What the optimizer changes are the *master weights*, the same numbers in float32, of which a rank keeps those
// that it owns. The optimizers of this folder keep whole weights in float32; here their plans become those of a step
// with master weights, which lesson 14 takes.

/// Weights in bfloat16: [buffer][bucket].
using RoundedBuckets = std::vector<std::vector<FlatOf<bfloat16>>>;

/// The same numbers rounded; and back, which is exact.
/// @{
RoundedBuckets rounded(const Buckets& buckets);
Buckets widened(const RoundedBuckets& buckets);
/// @}

/// The part of each whole bucket that DP rank `dp_rank` owns.
Buckets shards_of(const Layout& layout, const BucketsView& whole, int dp_rank);

namespace phases {
/// New master weights are rounded into their place among the weights.
constexpr Phase round_weights = "rounding to bf16";
}  // namespace phases

/// The plan of a step with master weights, from the plan of the same step without: weights are bfloat16, also where
/// they are gathered; master weights are kept for what the rank owns; and they are rounded before each gather.
/// `layout` is the one that was planned for.
Plan with_master_weights(const Plan& plan, const Layout& layout);

/// The plan of a step of which nothing is sharded over the DP ranks of `grid`, for its rank at `place`: all of them
/// keep everything and do everything. `plan` is that of the one DP rank of a layout without data parallelism, which
/// owns whole matrices (Ownership::matrices): its reduce-scatters become all-reduces of all ranks, and what gathers
/// over dp is left out.
Plan replicated(const Plan& plan, const Grid& grid, const Place& place);

}  // namespace muonwalk
