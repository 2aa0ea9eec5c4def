#pragma once

#include "src/optim/adamw.hpp"
#include "src/optim/full_step.hpp"

namespace muonwalk {

/// What AdamW keeps on one rank between steps where nothing is sharded over data-parallel ranks: its TP slices of all
/// weights and both their moments, whole buckets, the same on every DP rank. [buffer][bucket], as Buckets.
using AdamWBuckets = std::vector<std::vector<AdamWState>>;

/// The state before the first step: these weights (pack_buckets) and moments of zero.
AdamWBuckets initial_adamw_buckets(const Buckets& weights);

/// The weights alone.
Buckets weights_of(const AdamWBuckets& state);

/// One step of data-parallel AdamW, bucket by bucket: an all-reduce of this rank's own `gradients` (whole buckets; the
/// sum over DP ranks is what counts), then AdamW on every element, which all DP ranks do alike. `step` counts from 1
/// on. `observer` is told "all-reduce of gradients" and "AdamW" as each begins. Throws std::invalid_argument where
/// gradients and state differ in size.
void adamw_step(Communicator& dp, const Buckets& gradients, AdamWBuckets& state, int step,
                const AdamWSettings& settings, const std::function<void(const char* phase)>& observer = nullptr);

/// What adamw_step makes this rank send and receive, from the layout alone; the group is named "dp".
Ledger predict_adamw_step(const Layout& layout, const Place& place);

/// Elements of optimizer state, the weights not counted: both moments of AdamW.
Index state_elements(const AdamWBuckets& state);

/// The same of Muon: the momentum.
Index state_elements(const MuonState& state);

}  // namespace muonwalk
