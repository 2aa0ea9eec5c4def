// # Newton–Schulz once per matrix
//
// In the lesson, every rank that owns an element of a matrix orthogonalizes all of it. Do it once: every matrix has one
// owner, which gets the elements that it lacks, calls `newton_schulz`, and sends everybody back what is theirs.
//
//     dp         the DP group
//     layout     one buffer with one bucket: `layout.buffers[0].parameters` are its matrices (TP cuts nothing)
//     owners     the owner of each matrix, a rank of the DP group, in the order of the parameters
//     shard      my DP shard of the updates
//     returns    my DP shard of the orthogonal updates, of the same length, with 0 for padding
//
// `layout.owned_range(meta, r)` is what rank r has of a matrix, counted in the buffer, and `layout.local_range(meta,
// r)` the same counted in its shard. How you send is up to you, as long as no element goes where it is not needed. At
// no time hold more than the result, one matrix, and what `newton_schulz` needs for it (2 · m · n + 2 · m · m elements,
// with m ≤ n), besides what you are given.
#pragma once

#include <vector>

#include "src/comm/communicator.hpp"
#include "src/layout/buffer.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk {

using OrthogonalizeOnce = Flat(Communicator& dp, const Layout& layout, const std::vector<int>& owners,
                               const Flat& shard);

}  // namespace muonwalk
