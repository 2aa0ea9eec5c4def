// # New weights from new masters
//
// The optimizer has changed this rank's master weights. Now give every DP rank the new weights of the whole bucket, in
// bfloat16.
//
//     dp       the DP group
//     masters  my shard of the bucket's master weights: counts[dp.rank()] elements in float32
//     counts   how many elements each rank owns, in rank order; their shards make up the bucket
//     weights  the whole bucket, with the old weights; replace them
//
// `to_bf16` rounds. Send each new weight once to each other rank, in 2 bytes. Hold nothing more than you are given.
#pragma once

#include <vector>

#include "src/comm/communicator.hpp"
#include "src/numerics/bfloat16.hpp"

namespace muonwalk {

using RefreshWeights = void(Communicator& dp, const Flat& masters, const std::vector<Index>& counts,
                            FlatOf<bfloat16>& weights);

}  // namespace muonwalk
