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
/// precision, quintic and threads, product_first, and from_the_right, with which it is Bᵀ: X is a tall matrix's
/// transpose.
/// @{
void eigen_step(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers);
void chain_step(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers);
/// @}

/// What Newton–Schulz divides a matrix by, whose Frobenius norm is `norm`, by default norm + 1e-7; in bf16 with the
/// eight significant bits of a bfloat16 after every operation.
double newton_schulz_denominator(double norm, Precision precision, const Normalization& normalization = {});

/// Exchanges rows and columns of a square matrix.
void transpose_in_place(Matrix& square);

/// Throws UsageError that names the first element of `wide` that is not finite; `wide` is the parameter itself, or its
/// transpose if that is tall. There is one; `after_rounding` says whether to bfloat16.
[[noreturn]] void refuse_what_is_not_finite(const Matrix& wide, bool tall, bool after_rounding,
                                            const std::string& parameter);

}  // namespace muonwalk
