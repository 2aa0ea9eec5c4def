// # Muon's last line
//
// Change some neighbouring weights of a matrix: let them decay, then subtract the orthogonal update, scaled by the
// shape of the whole matrix.
//
//     weights     orthogonal.size() of them; change them in place
//     orthogonal  the elements of the orthogonal matrix at the same places
//     full_shape  the shape of the whole matrix, before TP and DP have cut anything
//     lr, weight_decay, rms   as in the lesson
//
// In this order, in float32, since the bits are compared:
// w ← w · (1 − lr · weight_decay) − (lr · rms · √max(rows, cols)) · orthogonal. Nothing is sent, and nothing more is
// held.
#pragma once

#include "src/layout/parameter.hpp"

namespace muonwalk {

using UpdateWeights = void(float* weights, const Flat& orthogonal, Shape full_shape, float lr, float weight_decay,
                           float rms);

}  // namespace muonwalk
