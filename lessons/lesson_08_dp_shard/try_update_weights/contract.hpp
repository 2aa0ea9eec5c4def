// # Muon's last line
//
// Change a run of weights: first let them decay, then take off the orthogonal update, scaled by the shape of the whole
// matrix.
//
//     weights     the run, one element per element of `orthogonal`; change it in place
//     orthogonal  the same elements of the orthogonal matrix
//     full_shape  the shape of the whole matrix, before TP and DP have cut anything
//     lr, weight_decay, rms   as in the lesson
//
// In this order, rounded after each operation, since the bits decide:
// w ← w · (1 − lr · weight_decay) − (lr · rms · √max(rows, cols)) · orthogonal. Nothing is sent, and nothing more is
// held.
#pragma once

#include "src/layout/parameter.hpp"

namespace muonwalk {

using UpdateWeights = void(float* weights, const Flat& orthogonal, Shape full_shape, float lr, float weight_decay,
                           float rms);

}  // namespace muonwalk
