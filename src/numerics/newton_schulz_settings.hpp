#pragma once

#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/products.hpp"

namespace muonwalk {

/// The coefficients of the quintic iteration φ(σ) = a σ + b σ³ + c σ⁵ (Keller Jordan, "Muon", 2024).
struct Quintic {
  float a = 3.4445f;
  float b = -4.7750f;
  float c = 2.0315f;
};

/// What Newton–Schulz divides a matrix by before its first step, so that no singular value is above 1, and when.
/// Implementations differ here; the defaults are those of Keller Jordan's.
struct Normalization {
  double epsilon = 1e-7;    ///< It keeps a zero matrix from being divided by zero.
  bool floor = false;       ///< Divide by max(cushion · ‖X‖, ε), and not by cushion · ‖X‖ + ε.
  double cushion = 1;       ///< Some coefficients need a largest singular value below 1, and so a cushion above 1.
  bool round_first = true;  ///< In bf16: round X, divide, and round again. If not: divide in float32, then round.
  /// Before that, every row of X is brought to the norm that rows have on average, √(‖X‖² / rows): X must be whole.
  bool equal_rows = false;
};

/// How the two lines of an iteration are written down, and so where bf16 rounds.
enum class IterationLines {
  scaled_first,  ///< B = b A + (c A) A, as Python reads c * A @ A; every product and every sum rounds.
  square_first,  ///< B = b A + c (A A), with brackets; every product and every sum rounds.
  one_call       ///< B = b A + c A A and X ← a X + B X are a call each (torch.addmm), which rounds once, at its end.
};

/// With `gram`, the step that multiplies X by what the steps before it have gathered, and takes X Xᵀ once more: without
/// it rounding would grow (Dao-AILab/gram-newton-schulz).
constexpr int kGramBeginsAnew = 3;

/// How newton_schulz iterates.
struct NewtonSchulzSettings {
  int steps = 5;  ///< 0 leaves it at the normalization.
  Precision precision = Precision::fp32;
  Quintic quintic = {};
  Products products = Products::eigen;
  int threads = 1;  ///< OpenMP threads in the products, which never change a bit.
  /// A polynomial for each step in place of the one above: step k takes number k, or the last one.
  std::vector<Quintic> schedule = {};
  Normalization normalization = {};
  /// With one_call, a polynomial without c takes no B: X ← a X + b (A X).
  IterationLines lines = IterationLines::scaled_first;
  /// A tall X is not transposed: A = Xᵀ X and X ← a X + X B. The sums are the same, term by term, so it makes a
  /// difference only where rounding leaves B asymmetric: in bf16 with scaled_first.
  bool from_the_right = false;
  /// Iterate on X Xᵀ where X is not square, and multiply X only after the second step and the last: the longer X, the
  /// fewer operations. It rounds elsewhere, so its bits are its own.
  bool gram = false;
};

}  // namespace muonwalk
