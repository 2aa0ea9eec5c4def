#pragma once

#include "sim/lesson_22/processor.hpp"
#include "src/comm/communicator.hpp"
#include "src/optim/buckets.hpp"

namespace muonwalk::sim {

// Stages of the journey on arrays of a Processor: those of src/optim/steps.hpp, call by call and array by array, so
// what a rank sends and holds is what its plan says.

/// The shards of all ranks of a group in rank order. In bf16 the shard is rounded, 2-byte elements travel, and all of
/// them are widened again. What was queued before is waited for.
Array gather(Communicator& group, Processor& processor, const Array& shard, const std::vector<Index>& counts,
             Precision precision);

/// The matrices of which DP rank `dp_rank` owns an element: those that it orthogonalizes. In the first buffer.
std::vector<DistMeta> owned_matrices(const Layout& layout, int dp_rank);

/// view_parameter and tp_gather: this rank's slice of `meta`'s matrix, out of a bucket that begins with the buffer, and
/// those of the others as the whole matrix. Slices of columns are laid side by side by copies with a stride.
Array tp_gather(Communicator& tp, Processor& processor, const Array& bucket, const DistMeta& meta, Precision precision);

/// tp_shard: the slice of TP rank `tp_rank` of `meta`'s matrix. A row of the matrix begins `stride` elements after the
/// one before; all but the columns of the matrix for that is a mistake.
Array tp_shard(Processor& processor, const Array& matrix, Index stride, const DistMeta& meta, int tp_rank);

/// dp_shard: what DP rank `dp_rank` owns of the slice of `meta`'s matrix.
Array dp_shard(Processor& processor, const Array& slice, const Layout& layout, const DistMeta& meta, int dp_rank);

/// A rank's TP slices, out of a whole bucket of its weights, on the host, which waits for them.
std::vector<NamedMatrix> slices_on_host(Processor& processor, const Layout& layout, const Array& bucket, int tp_rank);

/// Refuses what lesson 22 can't do: pipeline stages, and on GPUs products that have other bits there. Throws
/// UsageError.
void require_usable(const Grid& grid, Products products, bool on_gpus);

}  // namespace muonwalk::sim
