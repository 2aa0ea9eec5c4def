// # A step of ZeRO-1
//
// Given this rank's own gradients of a whole bucket, take a step of AdamW in which every DP rank updates what it owns,
// so that in the end all of them hold the same new weights.
//
//     dp             the DP group
//     weights        the whole bucket, the same on all ranks; change them in place
//     gradients      this rank's own, for the whole bucket; their sum over all ranks is what counts
//     counts         how many elements each rank owns, in rank order; their shards make up the bucket
//     first_moment   counts[dp.rank()] of them; change them in place
//     second_moment  likewise
//     step           t; the first step is 1
//     settings       for `adamw`, which src/optim/adamw.hpp declares and you may call
//
// Send each element twice at most: to who owns it, and from there to all. Hold no more than the sum of what you own,
// besides what you are given.
#pragma once

#include <vector>

#include "src/comm/communicator.hpp"
#include "src/optim/adamw.hpp"

namespace muonwalk {

using AdamwOverDp = void(Communicator& dp, Flat& weights, const Flat& gradients, const std::vector<Index>& counts,
                         Flat& first_moment, Flat& second_moment, int step, const AdamWSettings& settings);

}  // namespace muonwalk
