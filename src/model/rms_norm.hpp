#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// out = x / √(mean(x²) + ε) · gain, row by row (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019). x
/// and out are tokens × width, gain is 1 × width; inverse_rms gets 1 / √(…) for each row, which backward needs.
void rms_norm(const Matrix& x, const Matrix& gain, float epsilon, Matrix& out, Flat& inverse_rms);

/// Backward: with dy the gradient of the loss in `out`, and s = inverse_rms of a row,
///
///     dx = s · (gain ∘ dy) − x · s³ / width · Σ(gain ∘ dy ∘ x)
///
/// `d_gain` (1 × width) grows by Σ over rows of dy ∘ x · s, row after row. Returns dx, tokens × width.
Matrix rms_norm_backward(const Matrix& d_out, const Matrix& x, const Matrix& gain, const Flat& inverse_rms,
                         Matrix& d_gain);

}  // namespace muonwalk
