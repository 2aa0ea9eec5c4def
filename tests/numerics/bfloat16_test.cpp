#include "src/numerics/bfloat16.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "src/numerics/element_type.hpp"

using namespace muonwalk;

namespace {

bfloat16 pattern(std::uint32_t bits) {
  bfloat16 value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

// The finite bfloat16 of a pattern as a real number, from its definition: ± mantissa · 2^exponent. The first pattern
// past the largest finite one counts as 2^128, which is where rounding to infinity begins to be nearer.
double real_value(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 7 & 0xff);
  const int mantissa = static_cast<int>(bits & 0x7f);
  const double size = exponent == 0 ? std::ldexp(mantissa, -133) : std::ldexp(128 + mantissa, exponent - 134);
  return bits & 0x8000 ? -size : size;
}

// Rounding as a search: of all patterns of that sign, the nearest; of two equally near ones, the one with the even
// mantissa.
std::uint16_t nearest_by_search(float value) {
  const double size = std::fabs(static_cast<double>(value));
  std::uint32_t low = 0;
  std::uint32_t high = 0x7f80;
  if (std::isinf(value)) low = high;
  while (low + 1 < high) {
    const std::uint32_t middle = (low + high) / 2;
    (real_value(middle) <= size ? low : high) = middle;
  }
  const double below = size - real_value(low);
  const double above = real_value(high) - size;
  std::uint32_t chosen = below < above || (below == above && low % 2 == 0) ? low : high;
  if (std::isinf(value)) chosen = 0x7f80;
  return static_cast<std::uint16_t>(chosen | (std::signbit(value) ? 0x8000u : 0u));
}

void check_rounding(float value) {
  CAPTURE(float_bits(value));
  REQUIRE(bfloat16(value).bits == nearest_by_search(value));
}

}  // namespace

TEST_CASE("bfloat16: each of the 65536 patterns survives the way to float and back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    CAPTURE(bits);
    const float wide = static_cast<float>(pattern(bits));
    REQUIRE(float_bits(wide) == (bits << 16));
    const bool is_nan = (bits & 0x7fff) > 0x7f80;
    REQUIRE(bfloat16(wide).bits == (is_nan ? bits | 0x40 : bits));  // a NaN comes back quiet
  }
}

TEST_CASE("bfloat16: rounding is to the nearest, ties to even, around every one of the patterns") {
  for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const std::uint32_t middle = bits << 16 | 0x8000;
    for (std::uint32_t near : {bits << 16, (bits << 16) + 1, middle - 1, middle, middle + 1, middle + 0x7fff}) {
      check_rounding(float_from_bits(near));
      check_rounding(float_from_bits(near | 0x80000000u));
    }
  }
}

TEST_CASE("bfloat16: every NaN becomes a quiet NaN of the same sign, whatever its payload") {
  const std::uint32_t seed = 2;
  INFO("seed ", seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 100000; ++i) {
    std::uint32_t bits = static_cast<std::uint32_t>(random()) | 0x7f800000u;
    if (i < 2) bits = i == 0 ? 0x7f800001u : 0xffffffffu;
    if ((bits & 0x007fffff) == 0) continue;
    CAPTURE(bits);
    const std::uint32_t rounded = bfloat16(float_from_bits(bits)).bits;
    REQUIRE((rounded & 0x7fc0) == 0x7fc0);
    REQUIRE((rounded >> 15) == (bits >> 31));
  }
}

TEST_CASE("bfloat16: the array functions do what the single element does, at any count") {
  const std::uint32_t seed = 3;
  INFO("seed ", seed);
  std::mt19937 random(seed);
  for (Index count = 0; count < 70; ++count) {
    CAPTURE(count);
    std::vector<float> values(static_cast<std::size_t>(count) + 1, 1.00390625f);
    for (Index i = 0; i < count; ++i)
      values[static_cast<std::size_t>(i)] = float_from_bits(static_cast<std::uint32_t>(random()));
    std::vector<bfloat16> narrow(values.size());
    std::vector<float> wide(values.size(), 7.0f);
    std::vector<float> rounded = values;
    to_bf16(values.data(), count, narrow.data());
    from_bf16(narrow.data(), count, wide.data());
    round_to_bf16(rounded.data(), count);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      REQUIRE(narrow[i].bits == bfloat16(values[i]).bits);
      REQUIRE(float_bits(wide[i]) == (std::uint32_t{narrow[i].bits} << 16));
      REQUIRE(float_bits(rounded[i]) == float_bits(wide[i]));
    }
    CHECK(narrow.back().bits == 0);
    CHECK(wide.back() == 7.0f);
    CHECK(rounded.back() == 1.00390625f);
  }
}

TEST_CASE("precision_name and element_name: these words; an element takes 4, 2 or 1 bytes") {
  CHECK(std::string(precision_name(Precision::fp32)) == "fp32");
  CHECK(std::string(precision_name(Precision::bf16)) == "bf16");
  CHECK(std::string(element_name(ElementType::float32)) == "float32");
  CHECK(std::string(element_name(ElementType::bfloat16)) == "bfloat16");
  CHECK(std::string(element_name(ElementType::bytes)) == "bytes");
  CHECK(element_size(ElementType::float32) == 4);
  CHECK(element_size(ElementType::bfloat16) == 2);
  CHECK(element_size(ElementType::bytes) == 1);
  CHECK((ElementTypeOf<float>::value == ElementType::float32));
  CHECK((ElementTypeOf<bfloat16>::value == ElementType::bfloat16));
  CHECK((ElementTypeOf<std::byte>::value == ElementType::bytes));
  CHECK(sizeof(bfloat16) == 2);
  CHECK(bfloat16().bits == 0);
}
