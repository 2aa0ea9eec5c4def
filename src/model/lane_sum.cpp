#include "src/model/lane_sum.hpp"

namespace muonwalk {
namespace {

constexpr Index kLanes = 16;

// The lanes' sums as a balanced tree.
float ends_of(float (&lanes)[kLanes]) {
  for (Index width = kLanes / 2; width > 0; width /= 2)
    for (Index i = 0; i < width; ++i) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
  return lanes[0];
}

}  // namespace

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
