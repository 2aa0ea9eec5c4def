#include "src/model/exponential.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "src/numerics/philox.hpp"

using namespace muonwalk;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kSmallest = std::numeric_limits<float>::min();  // of normal numbers
constexpr float kLargest = std::numeric_limits<float>::max();

// How far from eˣ in units of its last place.
double places_off(float x, float said) {
  const double exact = std::exp(static_cast<double>(x));
  int exponent = 0;
  std::frexp(exact, &exponent);
  return std::abs(said - exact) / std::ldexp(1.0, exponent - 24);
}

bool same(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

}  // namespace

TEST_CASE("exponential: within two units of the last place wherever the result is a normal number") {
  // Every 997th float32 of both signs, so all exponents and many mantissas.
  double worst = 0;
  for (std::uint32_t magnitude = 0; magnitude < 0x7f800000u; magnitude += 997)
    for (const std::uint32_t sign : {0u, 0x80000000u}) {
      const std::uint32_t bits = magnitude | sign;
      float x = 0;
      std::memcpy(&x, &bits, sizeof x);
      const double exact = std::exp(static_cast<double>(x));
      const float said = exponential(x);
      if (exact < kSmallest) {
        if (!same(said, 0.0f)) FAIL("e^" << x << " is too small, and not 0 but " << said);
      } else if (exact > kLargest) {
        if (said != kInfinity) FAIL("e^" << x << " is too large, and not infinite but " << said);
      } else {
        worst = std::max(worst, places_off(x, said));
      }
    }
  // And where softmax and silu are most of the time.
  for (int i = -1000000; i <= 1000000; ++i) {
    const float x = static_cast<float>(i) * 2e-5f;
    worst = std::max(worst, places_off(x, exponential(x)));
  }
  CHECK(worst <= 2.0);
}

TEST_CASE("exponential: the ends of the range, number by number") {
  for (const double edge : {-87.33654475, -87.3, 88.0, 88.72, 88.72283905}) {
    float x = static_cast<float>(edge);
    for (int i = 0; i < 2000; ++i) x = std::nextafter(x, -kInfinity);
    for (int i = 0; i < 4000; ++i, x = std::nextafter(x, kInfinity)) {
      const double exact = std::exp(static_cast<double>(x));
      const float said = exponential(x);
      INFO("e^" << x << " = " << exact << ", and it is " << said);
      if (exact < kSmallest)
        CHECK(same(said, 0.0f));
      else if (exact > kLargest)
        CHECK(said == kInfinity);
      else
        CHECK(places_off(x, said) <= 2.0);
    }
  }
}

TEST_CASE("exponential: special numbers") {
  CHECK(exponential(0.0f) == 1.0f);
  CHECK(exponential(-0.0f) == 1.0f);
  CHECK(same(exponential(-kInfinity), 0.0f));
  CHECK(same(exponential(-1e30f), 0.0f));
  CHECK(same(exponential(-104.0f), 0.0f));
  CHECK(exponential(kInfinity) == kInfinity);
  CHECK(exponential(89.0f) == kInfinity);
  CHECK(exponential(kLargest) == kInfinity);
  CHECK(std::isnan(exponential(kNan)));
  CHECK(exponential(std::numeric_limits<float>::denorm_min()) == 1.0f);
}

TEST_CASE("exponential: many at a time are the same as one by one, whatever the count") {
  std::vector<float> x = {kNan,   -kInfinity, kInfinity, 0.0f,   -0.0f,  -87.33f,
                          -87.4f, 88.0f,      88.1f,     88.72f, 88.73f, 1e30f};
  for (std::uint64_t i = 0; i < 300; ++i) x.push_back(40 * random_value({3, 1}, i));
  for (std::size_t first = 0; first < 20; ++first)
    for (std::size_t count = 0; first + count <= x.size(); count += count < 70 ? 1 : 60) {
      std::vector<float> values = x;
      exponentials(values.data() + first, static_cast<Index>(count));
      for (std::size_t i = 0; i < x.size(); ++i) {
        const float expected = first <= i && i < first + count ? exponential(x[i]) : x[i];
        if (!same(values[i], expected) && !(std::isnan(values[i]) && std::isnan(expected)))
          FAIL("number " << i << " of " << count << " from " << first << ": " << values[i] << ", not " << expected);
      }
    }
}
