#pragma once

// Rounding to bfloat16 without a branch and without a call, so that the loops over it become vector code.

#include <cstdint>
#include <cstring>

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

}  // namespace muonwalk
