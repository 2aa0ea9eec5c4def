// # The address of one element
//
// Given a matrix's `dist_meta`, a row and a column of the whole matrix, say where the element lies: on which TP rank,
// in which bucket, as which element of the bucket, on which DP rank, and as which element of that rank's shard.
//
//     buffer     in which the matrix lies: bucket b is `buffer.buckets[b].range` of it, and of that DP rank r owns
//                what is from `buckets[b].cuts[r]` to `cuts[r + 1]`, counted in the buffer
//     meta       of the matrix: `shape` is that of a TP slice, `full_shape` that of the whole matrix
//     row, col   in the whole matrix
//     returns    an Address; where TP cuts nothing, tp_rank is 0
//
// Nothing is sent, and no matrix is held.
#pragma once

#include "src/layout/buffer.hpp"

namespace muonwalk {

/// Where an element lies.
struct Address {
  int tp_rank = 0;      ///< whose slice has it
  int bucket_idx = 0;   ///< in its buffer
  Index in_bucket = 0;  ///< counted from the beginning of the bucket
  int dp_rank = 0;      ///< whose shard has it
  Index in_shard = 0;   ///< counted from the beginning of that shard
};

using FindElement = Address(const Buffer& buffer, const DistMeta& meta, Index row, Index col);

}  // namespace muonwalk
