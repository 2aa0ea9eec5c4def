// # Bucket by bucket, with little memory
//
// Given this rank's DP shard of every bucket, gather the buckets one after the other, and hand each matrix to `use`, in
// the order in which they lie.
//
//     dp         the DP group
//     buffer     all its `parameters`, and its `buckets`: `buckets[b].parameters` are indices into `parameters`
//     shards     this rank's shards, one per bucket
//     use        takes a matrix of the shape `meta.shape`; when it returns, it needs the matrix no more
//
// Send each shard once to each other rank: one `dp.all_gather` per bucket. At no time hold more than one bucket and one
// of its matrices, besides what you are given.
#pragma once

#include <functional>

#include "src/comm/communicator.hpp"
#include "src/layout/buffer.hpp"

namespace muonwalk {

using UseMatrix = std::function<void(const DistMeta& meta, const Matrix& matrix)>;
using GatherEachBucket = void(Communicator& dp, const Buffer& buffer, const std::vector<Flat>& shards,
                              const UseMatrix& use);

}  // namespace muonwalk
