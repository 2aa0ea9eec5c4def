#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/products.hpp"

namespace muonwalk {

/// The coefficients of the quintic iteration φ(σ) = a σ + b σ³ + c σ⁵ (Keller Jordan, "Muon", 2024).
struct Quintic {
  float a = 3.4445f;   ///< of σ
  float b = -4.7750f;  ///< of σ³
  float c = 2.0315f;   ///< of σ⁵
};

/// How newton_schulz iterates.
struct NewtonSchulzSettings {
  int steps = 5;                          ///< how often; 0 leaves it at the normalization
  Precision precision = Precision::fp32;  ///< bf16 rounds inputs and results to bfloat16
  Quintic quintic = {};                   ///< the polynomial of every step
  Products products = Products::eigen;    ///< what computes its products
  int threads = 1;                        ///< OpenMP threads in the products; never changes a bit
};

/// Replaces the singular values of x by values near 1 and keeps its singular vectors: transpose if rows > cols,
/// X ← X / (‖X‖_F + 1e-7), then `steps` times A = X Xᵀ, B = b A + (c A) A, X ← a X + B X, and transpose back.
/// x rows × cols; the result has the same shape. In bf16 every input and result of a product and of an elementwise step
/// is rounded to bfloat16. A zero matrix stays zero. `after_step(k, X)`, where given, sees X (wide, so min × max)
/// before the first step (k = 0) and after each. Throws UsageError, naming `parameter`, when x holds a NaN or an
/// infinity.
Matrix newton_schulz(const Matrix& x, const NewtonSchulzSettings& settings = {}, const std::string& parameter = "x",
                     const std::function<void(int step, const Matrix& x)>& after_step = nullptr);

/// The floating point operations of newton_schulz, counted as the plain formula does (a multiply-add is two):
/// steps · (4 m²n + 2 m³) with m = min(rows, cols), n = max(rows, cols); 20 m²n + 10 m³ for five steps.
double newton_schulz_flops(Index rows, Index cols, int steps = 5);

/// What is left of them when half of each symmetric product is mirrored from the other, which is what both engines do:
/// steps · (3 m²n + m³). In bf16 steps · (3 m²n + 2 m³), because rounding c A leaves (c A) A asymmetric.
double newton_schulz_flops_by_halves(Index rows, Index cols, Precision precision, int steps = 5);

/// The singular values of x in double precision, largest first: min(rows, cols) of them.
std::vector<double> singular_values(const Matrix& x);

}  // namespace muonwalk
