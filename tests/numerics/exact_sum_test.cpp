// The sum of squares that has no order: against sums in 128-bit integers and against expansions of doubles, and split
// and shuffled in every way.
#include "src/numerics/exact_sum.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/philox.hpp"

using namespace muonwalk;

namespace {

std::uint64_t double_bits(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Finite numbers of all bit patterns whose stored exponents are from `lowest` to `highest` (0: subnormal, 254: the
// largest).
std::vector<float> floats(std::uint32_t seed, std::size_t count, std::uint32_t lowest = 0,
                          std::uint32_t highest = 254) {
  std::vector<float> values;
  for (std::uint32_t i = 0; values.size() < count; ++i) {
    const auto words = philox4x32_10({i, 0, 0, 0}, {seed, 7});
    const std::uint32_t exponent = lowest + words[0] % (highest - lowest + 1);
    values.push_back(float_from_bits((words[1] & 0x807fffff) | exponent << 23));
  }
  return values;
}

ExactSum sum_of(const std::vector<float>& values) {
  ExactSum sum;
  sum.add_squares(values.data(), static_cast<Index>(values.size()));
  return sum;
}

// Shewchuk's sum ("Adaptive Precision Floating-Point Arithmetic", 1997), as Python's math.fsum takes it: doubles that
// do not overlap and whose sum is the exact one. Squares of float32 are doubles exactly, and nothing here overflows.
double sum_of_expansion(const std::vector<float>& values) {
  std::vector<double> partials;
  for (const float value : values) {
    double x = static_cast<double>(value) * static_cast<double>(value);
    std::size_t kept = 0;
    for (double y : partials) {
      if (std::abs(x) < std::abs(y)) std::swap(x, y);
      const double high = x + y, low = y - (high - x);
      if (low != 0) partials[kept++] = low;
      x = high;
    }
    partials.resize(kept);
    partials.push_back(x);
  }
  double high = 0, low = 0;
  while (!partials.empty()) {
    const double x = high, y = partials.back();
    partials.pop_back();
    high = x + y;
    low = y - (high - x);
    if (low != 0) break;
  }
  // Half of a unit that remains, and more below it of the same sign: the even one is not the nearest.
  if (!partials.empty() && (low < 0) == (partials.back() < 0)) {
    const double twice = 2 * low, above = high + twice;
    if (twice == above - high) high = above;
  }
  return high;
}

}  // namespace

TEST_CASE("ExactSum: any finite numbers: the exact sum rounded once, as an expansion of doubles has it") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    // All magnitudes, some binades next to each other, only the smallest, only the largest.
    for (const auto& [lowest, highest] : {std::pair{0u, 254u}, {100u + seed % 40, 150u}, {0u, 2u}, {250u, 254u}}) {
      const std::vector<float> values = floats(seed, 1 + seed * 7 % 300, lowest, highest);
      REQUIRE(double_bits(sum_of(values).value()) == double_bits(sum_of_expansion(values)));
    }
  }
}

TEST_CASE("ExactSum: shuffled, split anywhere, added up by any rank first: the same bytes") {
  std::mt19937 shuffle(1);
  for (std::uint32_t seed = 1; seed <= 100; ++seed) {
    CAPTURE(seed);
    std::vector<float> values = floats(seed, 700);
    const auto bytes = sum_of(values).bytes();
    std::shuffle(values.begin(), values.end(), shuffle);
    REQUIRE(sum_of(values).bytes() == bytes);
    std::vector<ExactSum> parts(1 + seed % 9);
    for (std::size_t begin = 0; begin < values.size();) {
      const std::size_t end = std::min<std::size_t>(values.size(), begin + shuffle() % 90);
      parts[shuffle() % parts.size()].add_squares(values.data() + begin, static_cast<Index>(end - begin));
      begin = end;
    }
    std::shuffle(parts.begin(), parts.end(), shuffle);
    ExactSum sum;
    for (const ExactSum& part : parts) sum.add(ExactSum::of_bytes(part.bytes().data()));
    REQUIRE(sum.bytes() == bytes);
    REQUIRE(double_bits(sum.value()) == double_bits(sum_of(values).value()));
  }
}

TEST_CASE("ExactSum: more numbers than a bin has room for, at odd places") {
  for (const std::size_t count : {131071u, 131072u, 131073u, 400001u}) {
    CAPTURE(count);
    std::vector<float> values(count, float_from_bits(0x4b7fffff));  // 2²⁴ − 1, the most bits that a square can have
    const double square = 281474943156225.0;                        // (2²⁴ − 1)²
    CHECK(sum_of(values).value() == static_cast<double>(static_cast<long double>(square) * count));
    values.back() = 0.5f;
    CHECK(sum_of(values).value() == static_cast<double>(static_cast<long double>(square) * (count - 1) + 0.25L));
  }
}

TEST_CASE("ExactSum: the smallest beside the largest, halves of a unit, zeros and signs") {
  const float most = std::numeric_limits<float>::max(), least = std::numeric_limits<float>::denorm_min();
  CHECK(sum_of({}).value() == 0);
  CHECK(sum_of({0.0f, -0.0f}).bytes() == sum_of({}).bytes());
  CHECK(sum_of({3, -4}).value() == 25);
  CHECK(sum_of({least}).value() == std::ldexp(1.0, -298));
  CHECK(sum_of({most}).value() == static_cast<double>(most) * static_cast<double>(most));
  CHECK(sum_of({most, least}).value() == sum_of({most}).value());
  CHECK(sum_of({most, least}).bytes() != sum_of({most}).bytes());
  // 2⁵⁴ + 2 lies between two doubles: to the even one, 2⁵⁴; with the least more above it, to 2⁵⁴ + 4; and 2⁵⁴ + 6 to
  // the even one, 2⁵⁴ + 8.
  const float p = std::ldexp(1.0f, 27);
  CHECK(sum_of({p, 1, 1}).value() == std::ldexp(1.0, 54));
  CHECK(sum_of({p, 1, 1, least}).value() == std::ldexp(1.0, 54) + 4);
  CHECK(sum_of({p, 2, 1, 1}).value() == std::ldexp(1.0, 54) + 8);
  for (int k = 1; k <= 149; ++k) CHECK(sum_of({p, 1, 1, std::ldexp(1.0f, -k)}).value() == std::ldexp(1.0, 54) + 4);
}

TEST_CASE("ExactSum: a carry goes through all digits, whether a number or a sum brings it") {
  std::vector<float> ones;  // 3 · 4⁻ᵏ for every k: all digits below the point are ones
  for (int k = 1; k <= 149; ++k) ones.insert(ones.end(), 3, std::ldexp(1.0f, -k));
  const float least = std::numeric_limits<float>::denorm_min();
  ExactSum sum = sum_of(ones), other = sum;
  CHECK(sum.value() == 1);  // rounded
  CHECK(sum.bytes() != sum_of({1}).bytes());
  sum.add_squares(&least, 1);
  CHECK(sum.bytes() == sum_of({1}).bytes());
  other.add(sum_of({least}));
  CHECK(other.bytes() == sum_of({1}).bytes());
}

TEST_CASE("ExactSum: a NaN or an infinity is never forgotten") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {inf, -inf, std::numeric_limits<float>::quiet_NaN(), float_from_bits(0x7f800001)}) {
    std::vector<float> values = floats(3, 40);
    values[17] = bad;
    ExactSum sum = sum_of(values);
    CHECK_FALSE(sum.finite());
    CHECK(std::isnan(sum.value()));
    CHECK_FALSE(ExactSum::of_bytes(sum.bytes().data()).finite());
    ExactSum other = sum_of(floats(4, 40));
    CHECK(other.finite());
    other.add(sum);
    CHECK(std::isnan(other.value()));
    sum.add_squares(values.data(), 3);
    CHECK(std::isnan(sum.value()));
    sum.add(sum_of(floats(5, 40)));
    CHECK(std::isnan(sum.value()));
  }
}
