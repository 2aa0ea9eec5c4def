// # Find a matrix in the gathered bucket
//
// Given a whole bucket, return one of its matrices, copied out and viewed with the shape that its `dist_meta` states.
//
//     bucket     all elements of the bucket, padding included
//     begin      where the bucket begins in the buffer
//     meta       of the matrix: `meta.global_range` counts from the beginning of the buffer, `meta.shape` is after TP
//     returns    meta.shape.rows × meta.shape.cols
//
// Nothing is sent. Hold no more than the matrix that you return, besides what you are given.
#pragma once

#include "src/layout/buffer.hpp"

namespace muonwalk {

using ViewInBucket = Matrix(const Flat& bucket, Index begin, const DistMeta& meta);

}  // namespace muonwalk
