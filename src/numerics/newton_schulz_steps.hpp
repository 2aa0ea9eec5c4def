#pragma once

#include <string>
#include <vector>

#include "src/numerics/chain_kernel.hpp"
#include "src/numerics/newton_schulz_settings.hpp"

namespace muonwalk {

/// The matrices of one iteration beside X, kept from step to step.
struct NewtonSchulzBuffers {
  /// For an X of m × n. Only bf16 rounds c A, which then needs a place of its own.
  NewtonSchulzBuffers(Index m, Index n, Precision precision)
      : a(m, m), b(m, m), scaled(precision == Precision::bf16 ? Matrix(m, m) : Matrix()), next(m, n) {}
  Matrix a;       // X Xᵀ, m × m
  Matrix b;       // b A + (c A) A, m × m
  Matrix scaled;  // c A, m × m in bf16, else empty
  Matrix next;    // a X + B X, m × n
};

/// The product in which a step ends: next ← a X + factor · left X, for an X of m rows and a `left` of m × m.
struct NextProduct {
  const Matrix& x;
  const Matrix& left;
  Matrix& next;
  float a = 0, factor = 1;
  bool symmetric = false;  ///< Next is symmetric but for rounding: the half below the diagonal decides.
};

/// What a step is made of, with chains or in Eigen's words, in the settings' precision, lines and threads. Of Eigen's
/// there is one for each kind of processor. Between two kinds, the last bits may differ.
struct StepCode {
  const char* name;  ///< "plain", "avx2" or "avx512"; "chain"
  /// buffers.a = X Xᵀ.
  void (*gram)(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers);
  /// buffers.b = b A + (c A) A of buffers.a, by settings.quintic; with from_the_right its transpose.
  void (*polynomial)(const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers);
  void (*next)(const NextProduct& product, const NewtonSchulzSettings& settings);
};
extern const StepCode chain_code;

/// Those that this processor can run, the best one last.
std::vector<const StepCode*> eigen_codes();

/// The last of them, or the one that the environment variable MUONWALK_EIGEN names. Throws UsageError when it names
/// none that this processor can run.
const StepCode& eigen_code();

/// The three chain products of a step, for a processor or a GPU, in the settings' order: A = X Xᵀ; B = b A + (c A) A,
/// for which bf16 takes c A, rounded, from `scaled`; and the next X, a X + B X. X is m × n.
/// @{
ChainProduct chain_square(Index m, Index n, const NewtonSchulzSettings& settings, const float* x, float* a);
ChainProduct chain_polynomial(Index m, const NewtonSchulzSettings& settings, const float* a, const float* scaled,
                              float* b);
ChainProduct chain_next(Index m, Index n, float a, const NewtonSchulzSettings& settings, const float* x, const float* b,
                        float* next);
/// @}

/// What newton_schulz is made of, in this order: the first two once, the others for step 1, 2, …, settings.steps. Each
/// is given X, or a piece of it, if X = (X₁ … X_T) lies in pieces of m × n/T side by side. The squares, and A, are
/// those of the piece; whoever adds them up over all pieces before going on has the result's pieces at the end.
/// @{

/// The sum of squares that the norm is the root of. In bf16, if settings.normalization.round_first, it rounds X before;
/// with equal_rows it then makes the rows equal.
/// Throws UsageError, naming `parameter`, where X holds a NaN or an infinity, or does after rounding; X is that
/// parameter, or, with `turned`, its transpose.
double squares_of_norm(Matrix& x, bool turned, const NewtonSchulzSettings& settings, const std::string& parameter);
/// X ← X / (√squares + 1e-7), with the settings' variants.
void divide_by_norm(Matrix& x, double squares, const NewtonSchulzSettings& settings);
/// buffers.a = X Xᵀ, on the settings' engine.
void newton_schulz_gram(const Matrix& x, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers);
/// X ← a X + B X, with B of buffers.a and the polynomial of step number `step`, counted from 1.
void newton_schulz_update(Matrix& x, int step, const NewtonSchulzSettings& settings, NewtonSchulzBuffers& buffers);
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
