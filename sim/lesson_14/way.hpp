#pragma once

#include <string>
#include <vector>

#include "sim/lesson_14/rank_memory.hpp"
#include "sim/world/options.hpp"
#include "src/optim/master_weights.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/train/training.hpp"

namespace muonwalk::sim {

/// A way to train the model of lesson 14 in mixed precision.
struct Way {
  std::string name;      ///< "ZeRO-1 Muon"
  bool muon = false;     ///< Muon steps the hidden matrices; otherwise AdamW does, as it does all others
  bool sharded = false;  ///< ZeRO-1; otherwise every DP rank keeps everything, as without a distributed optimizer
};

/// The model, routed to the usual groups: an embedding, two layers of four hidden matrices each, and a gain.
std::vector<Parameter> memory_model();

/// Whether Muon steps the buffer's parameters.
bool is_muons(const Way& way, const Buffer& buffer);

/// AdamW's settings for a parameter group: weights decay, but not those of vectors.
AdamWSettings adamw_of_group(int group);

/// The layout of `parameters`, without padding between them. Where nothing is sharded it is that of a grid without data
/// parallelism, whose one DP rank owns whole matrices. Throws what plan_layout throws.
Layout layout_of(const Way& way, const std::vector<Parameter>& parameters, const Grid& grid, Index bucket_capacity);

/// Which DP rank of layout_of the rank at `place` is: its own, or, where nothing is sharded, the only one.
inline int dp_rank_of(const Way& way, const Place& place) { return way.sharded ? place.dp : 0; }

/// The optimizer of all groups, without master weights: it has the reference.
GroupedOptimizer optimizer_of(const Way& way, const std::vector<Parameter>& parameters, const MuonSettings& muon);

/// The plan of a step with master weights on the rank at `place` of `grid`, for a layout of layout_of or one group of
/// it.
Plan plan_of(const Way& way, const GroupedOptimizer& optimizer, const Layout& layout, const Grid& grid,
             const Place& place);

/// What the rank should hold then: all groups, and the hidden matrices alone.
RankMemory memory_of(const Way& way, const GroupedOptimizer& optimizer, const Layout& layout, const Grid& grid,
                     const Place& place);

/// The gradients that the rank at a seat computes itself in a step (counted from 0), with weights as it has them: whole
/// buckets.
Buckets own_gradients(const Training& data, int step, const Layout& layout, const RoundedBuckets& weights,
                      const Seat& seat);

/// What a rank holds of masters and weights, to be compared: each bucket of the masters as it lies, and the weights.
std::vector<NamedMatrix> masters_and_weights(const Buckets& masters, const std::vector<NamedMatrix>& weights);

/// The same as it should be, from whole matrices in float32: for the rank at `place`, which is DP rank `dp_rank` of
/// `layout`.
std::vector<NamedMatrix> masters_and_weights(const std::vector<Parameter>& parameters,
                                             const std::vector<NamedMatrix>& whole, const Layout& layout,
                                             const Place& place, int dp_rank);

}  // namespace muonwalk::sim
