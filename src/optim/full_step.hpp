#pragma once

#include <functional>
#include <vector>

#include "src/optim/steps.hpp"

namespace muonwalk {

/// One flat array for each bucket of each buffer: [buffer][bucket].
using Buckets = std::vector<std::vector<Flat>>;

/// What one rank keeps between steps.
struct MuonState {
  Buckets weights;   ///< its TP slices of all parameters, whole buckets, the same on every DP rank
  Buckets momentum;  ///< its DP shards alone: bucket size / dp elements each
};

/// Packs full matrices (in the order of the parameters that the layout was planned from) as TP rank `tp_rank` holds
/// them: whole buckets with zeros for padding.
Buckets pack_buckets(const Layout& layout, const std::vector<const Matrix*>& full, int tp_rank);

/// The same from one rank's TP slices, in the order of the parameters.
Buckets pack_slices(const Layout& layout, const std::vector<Matrix>& slices);

/// The opposite: a rank's TP slices, named, with their place in the full matrices.
std::vector<NamedMatrix> unpack_buckets(const Layout& layout, const Buckets& buckets, int tp_rank);

/// The state before the first step: packed weights and zero momentum.
MuonState initial_state(const Layout& layout, const std::vector<const Matrix*>& full, int tp_rank);

/// The phases of a step, in order. `full_step` announces each as it begins, so that a caller can take the time.
enum class Phase {
  reduce_gradients,
  momentum,
  dp_gather,
  tp_gather,
  orthogonalize,
  tp_shard,
  dp_shard,
  apply,
  gather_weights
};
/// How many phases there are.
constexpr int kPhases = 9;
/// "reduce-scatter of gradients", "momentum", "DP gather", "TP gather", "Newton–Schulz", "TP shard", "DP shard",
/// "apply", "all-gather of weights".
const char* phase_name(Phase phase);
/// Is told of each phase as it begins.
using PhaseObserver = std::function<void(Phase)>;

/// One complete step of distributed Muon ("Muon is Scalable for LLM Training", Liu et al. 2025, Algorithm 1), bucket by
/// bucket: reduce-scatter this rank's own `gradients` (whole buckets; the sum over DP ranks is what counts), momentum
/// on the DP shard, DP gather; then, for each parameter of which this rank owns an element: TP gather, Newton–Schulz,
/// TP shard, DP shard, apply; then the all-gather of the new weights. `place` is this rank's; `dp` and `tp` are its
/// groups.
void full_step(const Layout& layout, const Place& place, Communicator& dp, Communicator& tp,
               const MuonSettings& settings, const Buckets& gradients, MuonState& state,
               const PhaseObserver& observer = nullptr);

/// What full_step makes this rank send and receive, from the layout alone; the groups are named "dp" and "tp".
Ledger predict_full_step(const Layout& layout, const Place& place, const MuonSettings& settings);

/// Floating point operations of Newton–Schulz on this rank in one step: each parameter of which it owns an element.
double predict_newton_schulz_flops(const Layout& layout, const Place& place, int ns_steps);

/// The most elements that this rank holds at one time in full_step, padding included: what it is handed (whole buckets
/// of weights and of gradients, its momentum shards) and, at the worst moment, one gathered bucket and Newton–Schulz on
/// one whole matrix. An element counts as one whatever its type; the working memory of communicators and kernels is not
/// counted. It is what the rank's MemoryMeter counts.
Index predict_peak_elements(const Layout& layout, const Place& place, const MuonSettings& settings);

}  // namespace muonwalk
