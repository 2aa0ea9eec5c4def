#include "src/model/exponential.hpp"

#include <cstring>
#include <limits>

namespace muonwalk {
namespace {

constexpr Index kLanes = 16;

// The lanes' sums as a balanced tree.
float ends_of(float (&lanes)[kLanes]) {
  for (Index width = kLanes / 2; width > 0; width /= 2)
    for (Index i = 0; i < width; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
  return lanes[0];
}

// Without a branch, so that a compiler can take several numbers at a time. What lies outside of the range is put right
// by its caller.
inline float within_range(float x) {
  constexpr float kToInteger = 12582912.0f;    // 1.5 · 2²³: adding and taking it away again rounds to an integer
  constexpr float kLog2High = 0.693359375f;    // ln 2, of which n times the first 9 bits is exact
  constexpr float kLog2Low = -2.12194440e-4f;  // and the rest
  const float n = (x * 1.44269504f + kToInteger) - kToInteger;
  const float r = (x - n * kLog2High) - n * kLog2Low;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * (r * r) + r;
  sum = sum + 1.0f;
  const std::int32_t exponent = (static_cast<std::int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &exponent, sizeof(power));
  return sum * power;
}

constexpr float kLeast = -87.3f, kMost = 88.0f;  // e to these is a normal number, and so is 2ⁿ

inline float clamped(float x) { return x < kLeast ? kLeast : x > kMost ? kMost : x; }

inline float put_right(float x, float inside) {
  if (x < kLeast) return 0;
  if (x > kMost)
    return x > 88.7228f ? std::numeric_limits<float>::infinity() : within_range(x * 0.5f) * within_range(x * 0.5f);
  return x == x ? inside : x;
}

}  // namespace

float exponential(float x) { return put_right(x, within_range(x == x ? clamped(x) : 0)); }

void exponentials(float* values, Index count) {
  for (Index i = 0; i < count; ++i) values[i] = exponential(values[i]);
}

float lane_sum(const float* values, Index count) {
  float lanes[kLanes] = {};
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (Index lane = 0; lane < kLanes; ++lane) lanes[lane] += values[i + lane];
  for (Index lane = 0; i + lane < count; ++lane) lanes[lane] += values[i + lane];
  return ends_of(lanes);
}

float lane_dot(const float* left, const float* right, Index count) {
  float lanes[kLanes] = {};
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (Index lane = 0; lane < kLanes; ++lane) lanes[lane] += left[i + lane] * right[i + lane];
  for (Index lane = 0; i + lane < count; ++lane) lanes[lane] += left[i + lane] * right[i + lane];
  return ends_of(lanes);
}

}  // namespace muonwalk
