// # The sum of the gradients, for my shard only
//
// Every DP rank has computed a gradient for the whole bucket. Return the sum over all ranks, but only of
// the shard of the bucket that this rank owns.
//
//     dp         the DP group
//     gradients  this rank's own gradient, for all elements of the bucket
//     counts     how many elements each rank owns, in rank order; their shards make up the bucket
//     returns    counts[dp.rank()] elements
//
// Send no element to a rank that does not own it. Hold no more than what you return, besides what you are given.
#pragma once

#include <vector>

#include "src/comm/communicator.hpp"

namespace muonwalk {

using SumForMyShard = Flat(Communicator& dp, const Flat& gradients, const std::vector<Index>& counts);

}  // namespace muonwalk
