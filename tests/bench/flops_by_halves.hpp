#pragma once

#include <algorithm>

#include "src/numerics/bfloat16.hpp"

/// The floating point operations of newton_schulz when half of each symmetric product is mirrored from the other, which
/// is what both engines do: steps · (3 m²n + m³), m being the smaller size. In bf16 steps · (3 m²n + 2 m³), because
/// rounding c A leaves (c A) A asymmetric.
inline double newton_schulz_flops_by_halves(muonwalk::Index rows, muonwalk::Index cols, muonwalk::Precision precision,
                                            int steps = 5) {
  const double m = static_cast<double>(std::min(rows, cols)), n = static_cast<double>(std::max(rows, cols));
  return steps * (3 * m * m * n + (precision == muonwalk::Precision::bf16 ? 2 : 1) * m * m * m);
}
