// # Deal out whole matrices
//
// Given the shapes of matrices and a number of ranks, choose an owner for each matrix, so that no rank has much more
// Newton–Schulz to do than it must.
//
//     shapes     the shapes of the whole matrices; at least one
//     ranks      how many ranks there are; at least one
//     returns    the owner of each matrix, from 0 to ranks − 1, in the order of the shapes
//
// `newton_schulz_flops(rows, cols)` is the work of a matrix. Two loads can't be avoided: the mean of all ranks, and the
// work of the largest matrix. No rank may have more than 1.05 times the larger of them. Which of the ways to get there
// you choose is up to you. Nothing is sent, and no matrix is held.
#pragma once

#include <vector>

#include "src/layout/parameter.hpp"
#include "src/numerics/newton_schulz.hpp"

namespace muonwalk {

using AssignMatrices = std::vector<int>(const std::vector<Shape>& shapes, int ranks);

}  // namespace muonwalk
