// fails: scaled by how many weights you were given
#include <cmath>

#include "lessons/lesson_08_dp_shard/try_update_weights/contract.hpp"

using namespace muonwalk;

void update_weights(float* weights, const Flat& orthogonal, Shape full_shape, float lr, float weight_decay, float rms) {
  const float keep = 1.0f - lr * weight_decay;
  const float scale = lr * rms * std::sqrt(static_cast<float>(orthogonal.size()));
  for (std::size_t i = 0; i < orthogonal.size(); ++i) weights[i] = weights[i] * keep - scale * orthogonal[i];
}
