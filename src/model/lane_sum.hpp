#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// The sum of `count` numbers, in 16 chains whose ends are added as a tree: an order that depends on `count` alone and
/// that a processor can take 16 numbers at a time.
float lane_sum(const float* values, Index count);

/// The sum of products in the same order.
float lane_dot(const float* left, const float* right, Index count);

}  // namespace muonwalk
