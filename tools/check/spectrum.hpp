#pragma once

#include <vector>

#include "src/numerics/matrix.hpp"

namespace muonwalk::check {

/// A matrix X = Σ sᵢ qᵢ vᵢᵀ, and how much of a step D and of the weights W lies along qᵢ vᵢᵀ. Whatever Newton–Schulz
/// makes of X in exact arithmetic is Σ φ(sᵢ) qᵢ vᵢᵀ: so one decomposition stands for all coefficients and numbers of
/// steps.
struct Spectrum {
  double norm = 0;                            ///< ‖X‖, Frobenius.
  std::vector<double> values, step, weights;  ///< sᵢ, qᵢᵀ D vᵢ, qᵢᵀ W vᵢ: min(rows, cols) of each.
};

/// All three matrices have the same shape. In double precision, by the eigenvectors of X Xᵀ: parts with sᵢ below 1e-7
/// of the largest are left out.
Spectrum spectrum_of(const Matrix& x, const Matrix& step, const Matrix& weights);

}  // namespace muonwalk::check
