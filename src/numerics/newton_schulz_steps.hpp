#pragma once

#include "src/numerics/newton_schulz.hpp"

namespace muonwalk {

/// The matrices of one iteration beside X, kept from step to step.
struct NewtonSchulzBuffers {
  /// For an X of m × n. Only bf16 rounds c A, which then needs a place of its own.
  NewtonSchulzBuffers(Index m, Index n, Precision precision)
      : a(m, m), b(m, m), scaled(precision == Precision::bf16 ? Matrix(m, m) : Matrix()), next(m, n) {}
  Matrix a;       ///< X Xᵀ, m × m
  Matrix b;       ///< b A + (c A) A, m × m
  Matrix scaled;  ///< c A, m × m in bf16, else empty
  Matrix next;    ///< a X + B X, m × n
};

/// Computes buffers.next = a X + B X from X, m × n: one step, in Eigen's words or with chains. Both use the settings'
/// precision, quintic and threads.
/// @{
void eigen_step(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers);
void chain_step(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers);
/// @}

}  // namespace muonwalk
