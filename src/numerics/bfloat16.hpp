#pragma once

#include <cstdint>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// A bfloat16: the upper 16 bits of a float32 (1 sign, 8 exponent, 7 mantissa bits).
struct bfloat16 {
  std::uint16_t bits = 0;  ///< Sign, exponent and mantissa, from the highest bit down.

  bfloat16() = default;
  /// Rounds to nearest, ties to even; subnormals are kept, overflow goes to infinity, every NaN becomes a quiet NaN of
  /// the same sign.
  explicit bfloat16(float value);
  /// Exact.
  explicit operator float() const;
};

/// What a rank computes in: float32 throughout, or, as the proof of concept does on a GPU, every input and every result
/// of a product rounded to bfloat16, sums in float32, and 2-byte elements in the gathers.
enum class Precision { fp32, bf16 };

/// "fp32" or "bf16".
const char* precision_name(Precision precision);

/// Rounds each of `count` floats to the nearest bfloat16, in place.
void round_to_bf16(float* values, Index count);

/// Rounds `count` floats to bfloat16 elements.
void to_bf16(const float* values, Index count, bfloat16* out);

/// Widens `count` bfloat16 elements to floats; exact.
void from_bf16(const bfloat16* values, Index count, float* out);

}  // namespace muonwalk
