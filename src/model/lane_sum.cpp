#include "src/model/lane_sum.hpp"

namespace muonwalk {
namespace {

constexpr Index kLanes = 16;

// The sum of at(0), at(1) and so on.
template <class At>
float in_lanes(Index count, const At& at) {
  float lanes[kLanes] = {};
  Index i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (Index lane = 0; lane < kLanes; ++lane) lanes[lane] += at(i + lane);
  for (Index lane = 0; i + lane < count; ++lane) lanes[lane] += at(i + lane);
  for (Index width = kLanes / 2; width > 0; width /= 2)  // their ends as a balanced tree
    for (Index end = 0; end < width; ++end) lanes[end] = lanes[2 * end] + lanes[2 * end + 1];
  return lanes[0];
}

}  // namespace

float lane_sum(const float* values, Index count) {
  return in_lanes(count, [values](Index i) { return values[i]; });
}

float lane_dot(const float* left, const float* right, Index count) {
  return in_lanes(count, [left, right](Index i) { return left[i] * right[i]; });
}

}  // namespace muonwalk
