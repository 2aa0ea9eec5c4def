#include "src/io/float16.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

using namespace muonwalk;

namespace {

// What IEEE 754 says a pattern of finite half precision means, by its definition.
double value_of(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 10 & 0x1F);
  const double mantissa = bits & 0x3FF;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

float float_of_bits(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("float16: all 65536 patterns have their value as a float, and come back bit for bit") {
  int wrong_values = 0;
  int wrong_bits = 0;
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const float value = float16_to_float(static_cast<std::uint16_t>(bits));
    const bool special = (bits & 0x7C00) == 0x7C00;
    const bool right = !special              ? static_cast<double>(value) == value_of(bits)
                       : (bits & 0x3FF) == 0 ? std::isinf(value)
                                             : std::isnan(value);
    wrong_values += right && std::signbit(value) == ((bits & 0x8000) != 0) ? 0 : 1;
    wrong_bits += float_to_float16(value) == bits ? 0 : 1;
  }
  CHECK(wrong_values == 0);
  CHECK(wrong_bits == 0);
}

TEST_CASE("float16: halfway between any two neighbours rounds to the even one, a hair beside it to the nearer") {
  int wrong = 0;
  for (unsigned bits = 0; bits < 0x7C00; ++bits) {
    const double above = bits + 1 == 0x7C00 ? 65536 : value_of(bits + 1);
    const auto middle =
        static_cast<float>((value_of(bits) + above) / 2);  // exact: one more bit than half precision has
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float sign : {1.0f, -1.0f}) {
      const unsigned minus = sign < 0 ? 0x8000 : 0;
      wrong += float_to_float16(sign * middle) == (minus | (bits % 2 == 0 ? bits : bits + 1)) ? 0 : 1;
      wrong += float_to_float16(sign * std::nextafter(middle, 0.0f)) == (minus | bits) ? 0 : 1;
      wrong += float_to_float16(sign * std::nextafter(middle, infinity)) == (minus | (bits + 1)) ? 0 : 1;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("float16: overflow, infinity, NaN, and what is too small") {
  CHECK(float_to_float16(65504.0f) == 0x7BFF);
  CHECK(float_to_float16(65519.996f) == 0x7BFF);
  CHECK(float_to_float16(65520.0f) == 0x7C00);
  CHECK(float_to_float16(-1e30f) == 0xFC00);
  CHECK(float_to_float16(std::numeric_limits<float>::infinity()) == 0x7C00);
  CHECK(float_to_float16(std::numeric_limits<float>::denorm_min()) == 0);
  CHECK(float_to_float16(-0.0f) == 0x8000);
  // A NaN whose payload lies in the bits that go stays a NaN.
  CHECK(float_to_float16(float_of_bits(0x7F800001)) == 0x7E00);
  CHECK(float_to_float16(float_of_bits(0xFF800001)) == 0xFE00);
  CHECK(float_to_float16(float_of_bits(0x7FC00000)) == 0x7E00);
}
