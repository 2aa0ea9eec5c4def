#include "src/model/exponential.hpp"

#include <cstdint>
#include <cstring>
#include <limits>

namespace muonwalk {
namespace {

// The numbers whose exponentials are neither below the smallest normal number nor above the largest.
constexpr float kLeast = -87.3365402f, kMost = 88.7228317f;

// Without a branch, so that a compiler can take several numbers at a time.
inline float exponential_of(float x) {
  constexpr float kToInteger = 12582912.0f;     // 1.5 · 2²³: adding and taking it away again rounds to an integer
  constexpr float kLn2High = 0.693359375f;      // ln 2 in two parts: n times its first 9 bits is exact
  constexpr float kLn2Low = -2.12194440e-4f;    // and the rest
  const float above = x > kLeast ? x : kLeast;  // a NaN is not, and is put right at the end
  const float within = above < kMost ? above : kMost;
  const float n = (within * 1.44269504f + kToInteger) - kToInteger;
  const float r = (within - n * kLn2High) - n * kLn2Low;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * (r * r) + r;
  sum = sum + 1.0f;
  // Times 2ⁿ, by adding n to the exponent; 2ⁿ itself may be too large for a number, where the product is not.
  std::uint32_t bits;
  std::memcpy(&bits, &sum, sizeof(bits));
  bits += static_cast<std::uint32_t>(static_cast<std::int32_t>(n)) << 23;
  std::memcpy(&sum, &bits, sizeof(sum));
  sum = x < kLeast ? 0.0f : sum;
  sum = x > kMost ? std::numeric_limits<float>::infinity() : sum;
  return x == x ? sum : x;
}

}  // namespace

float exponential(float x) { return exponential_of(x); }

void exponentials(float* values, Index count) {
  for (Index i = 0; i < count; ++i) values[i] = exponential_of(values[i]);
}

}  // namespace muonwalk
