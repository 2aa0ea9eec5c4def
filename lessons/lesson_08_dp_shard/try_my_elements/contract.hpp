// # The elements of my slice that I own
//
// Given a matrix and what my DP shard is, both counted in the buffer, return the elements of the matrix that I own.
//
//     slice         the matrix (this rank's TP slice of it); its elements lie in the buffer row by row
//     global_range  where in the buffer it lies: slice.size() elements
//     mine          where in the buffer my DP shard lies
//     returns       the elements of the slice that lie in `mine`, in order; none where it has none
//
// Nothing is sent. Hold no more than what you return, besides what you are given.
#pragma once

#include "src/layout/parameter.hpp"

namespace muonwalk {

using MyElements = Flat(const Matrix& slice, Range global_range, Range mine);

}  // namespace muonwalk
