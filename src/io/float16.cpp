#include "src/io/float16.hpp"

#include <algorithm>
#include <cmath>

#include "src/numerics/bfloat16.hpp"

namespace muonwalk {

float float16_to_float(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1F;
  const std::uint32_t mantissa = bits & 0x3FF;
  if (exponent == 0) {  // zero or subnormal: mantissa · 2^-24, which a float holds exactly
    return float_from_bits(sign | float_bits(static_cast<float>(mantissa) * 0x1p-24f));
  }
  // Infinity and NaN have the highest exponent in both formats; the others change their bias from 15 to 127.
  const std::uint32_t widened = exponent == 0x1F ? 0xFF : exponent + (127 - 15);
  return float_from_bits(sign | widened << 23 | mantissa << 13);
}

std::uint16_t float_to_float16(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = bits >> 16 & 0x8000, payload = bits >> 13 & 0x3FF;
  const auto with_sign = [&](std::uint32_t magnitude) { return static_cast<std::uint16_t>(sign | magnitude); };
  const float size = std::fabs(value);
  if (std::isnan(value)) return with_sign(0x7C00 | (payload == 0 ? 0x200 : payload));  // never an infinity
  if (size >= 65520) return with_sign(0x7C00);
  // From 2^e on, half precision counts in units of 2^(e − 10); below 2^-14 as it does there. 1024 units and more are
  // one in the exponent, and so is a carry out of the mantissa, at the upper end to infinity.
  const int exponent = size == 0 ? -14 : std::max(std::ilogb(size), -14);
  const double units = std::nearbyint(std::ldexp(static_cast<double>(size), 10 - exponent));
  return with_sign((static_cast<std::uint32_t>(exponent + 14) << 10) + static_cast<std::uint32_t>(units));
}

}  // namespace muonwalk
