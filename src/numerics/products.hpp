#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// What computes the products of Newton–Schulz. Either gives the same bits on every rank and with any number of
/// threads; between the two, the last bits differ.
enum class Products {
  eigen,  ///< the iteration in Eigen's words
  chain,  ///< every element is one chain of multiply-adds, the same on every processor that has them fused
};

/// "eigen" or "chain".
const char* products_name(Products products);

/// out = left · right. left m × k, right k × n, out m × n (resized, apart from the factors). Every element is one chain
/// of multiply-adds in the order of k, sum = fma(left(i, k), right(k, j), sum), and nothing else decides its bits:
/// neither the shape around it, nor the tile it falls into, nor the number of threads, nor the processor: what must not
/// depend on the grid uses this. (A processor without fused multiply-adds computes them in the C library, slowly.) With
/// threads = 1 no OpenMP region is opened. Throws std::invalid_argument when the inner sizes differ.
void multiply(const Matrix& left, const Matrix& right, Matrix& out, int threads = 1);

/// out = left · rightᵀ where the caller knows that the result is symmetric (right = left, or A and c·A for a symmetric
/// A). Only the tiles on and below the diagonal are computed; the others are mirrored, which saves nearly half of the
/// work. left and right m × k, out m × m (resized), exactly symmetric in its bits.
void symmetric_product(const Matrix& left, const Matrix& right, Matrix& out, int threads = 1);

}  // namespace muonwalk
