// # An all-gather as a ring
//
// Given this rank's shard, return the shards of all ranks in rank order, with n − 1 messages to the next rank and none
// to any other.
//
//     group      n = group.size() ranks, of which this is number group.rank()
//     shard      this rank's shard; all ranks have as many elements
//     returns    n · shard.size() elements
//
// In every round, send one shard to the next rank (behind the last comes the first) with `group.isend`, receive one
// from the rank before with `group.recv`, and then wait for what you sent. In the first round you send your own shard,
// in every later one the shard that has just arrived. Hold no more than what you return.
#pragma once

#include "src/comm/communicator.hpp"

namespace muonwalk {

using RingAllGather = Flat(Communicator& group, const Flat& shard);

}  // namespace muonwalk
