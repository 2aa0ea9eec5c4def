#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// out = addend_scale · addend + (left_scale · left) · right, all row-major, `out` apart from the others.
///
/// Every element is one chain of multiply-adds in the order of k:
///     sum = addend_scale · addend(i, j);  for k = 0, 1, …: sum = fma(left_scale · left(i, k), right(k, j), sum)
/// and nothing else decides its bits: not the shape around it, nor the tile it falls into, nor the thread that computes
/// it.
struct PackedProduct {
  Index rows = 0;   ///< of left and out
  Index cols = 0;   ///< of right and out
  Index depth = 0;  ///< columns of left, rows of right

  const float* left = nullptr;    ///< rows × depth
  float left_scale = 1;           ///< multiplies each element of left
  const float* right = nullptr;   ///< depth × cols, or cols × depth where right_transposed
  bool right_transposed = false;  ///< multiply by rightᵀ
  const float* addend = nullptr;  ///< rows × cols, or null for zeros
  float addend_scale = 1;         ///< multiplies each element of addend
  float* out = nullptr;           ///< rows × cols
  bool symmetric = false;         ///< rows = cols; compute the elements on and below the diagonal and mirror them
};

/// Computes the product on `threads` OpenMP threads; opens no parallel region for one.
void compute(const PackedProduct& product, int threads);

}  // namespace muonwalk
