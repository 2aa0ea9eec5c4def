#include "src/io/float16.hpp"

#include <cstring>

namespace muonwalk {
namespace {

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

float float_of(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// value / 2^shift, rounded to nearest, ties to even.
std::uint32_t shift_right_rounded(std::uint32_t value, int shift) {
  const std::uint32_t kept = value >> shift;
  const std::uint32_t dropped = value & ((1u << shift) - 1);
  const std::uint32_t half = 1u << (shift - 1);
  return kept + (dropped > half || (dropped == half && (kept & 1)) ? 1 : 0);
}

}  // namespace

float float16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1F;
  const std::uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: mantissa · 2^-24, which a float holds exactly
    return float_of(sign | bits_of(static_cast<float>(mantissa) * 0x1p-24f));
  }
  // Infinity and NaN have the highest exponent in both formats; the others change their bias from 15 to 127.
  const std::uint32_t widened = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return float_of(sign | widened << 23 | mantissa << 13);
}

std::uint16_t float_to_float16(float value) {
  const std::uint32_t bits = bits_of(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const int exponent = static_cast<int>(bits >> 23 & 0xFF) - 127;
  const std::uint32_t mantissa = bits & 0x7FFFFF;
  std::uint32_t magnitude = 0;
  if (exponent == 128) {  // infinity, or a NaN, which must not become infinity when its lower bits go
    magnitude = 0x7C00 | mantissa >> 13;
    if (mantissa != 0 && mantissa >> 13 == 0) magnitude |= 0x200;
  } else if (exponent > 15) {
    magnitude = 0x7C00;
  } else if (exponent >= -14) {
    // A carry out of the mantissa rightly raises the exponent, at the upper end to infinity.
    magnitude = shift_right_rounded(static_cast<std::uint32_t>(exponent + 15) << 23 | mantissa, 13);
  } else if (exponent >= -25) {
    // Subnormal: the leading 1 is written out, and the whole counts units of 2^-24.
    magnitude = shift_right_rounded(0x800000 | mantissa, -exponent - 1);
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}

}  // namespace muonwalk
