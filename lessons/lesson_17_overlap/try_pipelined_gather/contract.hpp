// # The loop of the pipeline
//
// Given this rank's DP shard of every bucket, gather them one bucket ahead, and hand each whole bucket to `work`, in
// their order: while `work` is busy with one bucket, the next one travels.
//
//     dp         the DP group
//     shards     this rank's shard of each bucket; there is at least one
//     counts     for each bucket, how many elements each DP rank owns of it
//     work       takes the number of a bucket and all of its elements; when it returns, it needs them no more
//
// `start_dp_gather(dp, shards[k], counts[k], Precision::fp32)` posts the messages of a bucket and returns a
// `PostedGather`; its `wait()` returns the bucket, and is called once. Post each bucket once: the next one before you
// wait for the current one, and no earlier. At no time hold more than two buckets, besides what you are given.
#pragma once

#include <functional>

#include "lessons/lesson_17_overlap/overlap.hpp"

namespace muonwalk {

using WorkOnBucket = std::function<void(int bucket, const Flat& elements)>;
using PipelinedGather = void(Communicator& dp, const std::vector<Flat>& shards,
                             const std::vector<std::vector<Index>>& counts, const WorkOnBucket& work);

}  // namespace muonwalk
