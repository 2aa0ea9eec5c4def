#include <algorithm>
#include <cmath>

#include "lessons/lesson_08_dp_shard/try_update_weights/contract.hpp"

using namespace muonwalk;

// The root is taken of a float: a root in double would be rounded once more.
void update_weights(float* weights, const Flat& orthogonal, Shape full_shape, float lr, float weight_decay, float rms) {
  const float keep = 1.0f - lr * weight_decay;
  const float scale = lr * rms * std::sqrt(static_cast<float>(std::max(full_shape.rows, full_shape.cols)));
  for (std::size_t i = 0; i < orthogonal.size(); ++i) weights[i] = weights[i] * keep - scale * orthogonal[i];
}
