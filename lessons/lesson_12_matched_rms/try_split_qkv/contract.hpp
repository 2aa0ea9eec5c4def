// # A fused matrix, orthogonalized in three
//
// Given my TP slice of a fused matrix of q, k and v, return my rows of it with q, k and v orthogonalized, each by
// itself.
//
//     slice      my rows: TP rank r of t has rows r · n / t to (r + 1) · n / t of the n rows of the whole matrix
//     attention  heads of q, heads of k (and of v), rows per head. All of q come first, then all of k, then all of v
//     tp         my TP group
//     returns    as many rows as the slice has
//
// tp_gather, newton_schulz, take_rows and put_rows are there to be called (src/optim/steps.hpp). The bits are compared,
// so call newton_schulz once for all rows of q, once for those of k and once for those of v. Send no more than
// one gather of the slices needs.
#pragma once

#include "src/optim/steps.hpp"

namespace muonwalk {

using SplitQkv = Matrix(const Matrix& slice, const AttentionRows& attention, Communicator& tp);

}  // namespace muonwalk
