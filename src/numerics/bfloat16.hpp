#pragma once

#include <cstdint>
#include <cstring>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// The bits of the float whose lower 16 bits are zero and which is nearest to the float with these bits. Adding 0x7fff
/// rounds up whatever lies above the middle of two neighbours; the extra one, taken from the lowest bit that stays,
/// sends a tie to the even neighbour. A carry runs from the mantissa into the exponent, which is what rounding to the
/// next power of two, or to infinity, means. A NaN must not be rounded (it could become an infinity): it keeps its sign
/// and its upper bits and gets the quiet bit.
inline std::uint32_t nearest_bf16_bits(std::uint32_t bits) {
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
  const std::uint32_t quiet = (bits | 0x00400000u) & 0xffff0000u;
  return (bits & 0x7fffffffu) > 0x7f800000u ? quiet : rounded;
}

/// The 32 bits of a float32.
inline std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// The float32 of 32 bits.
inline float float_from_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/// The nearest bfloat16 to a float, as a float.
inline float nearest_bf16(float value) { return float_from_bits(nearest_bf16_bits(float_bits(value))); }

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
