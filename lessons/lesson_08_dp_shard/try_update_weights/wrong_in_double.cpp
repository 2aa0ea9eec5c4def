// fails: Only last bits differ
#include <algorithm>
#include <cmath>

#include "lessons/lesson_08_dp_shard/try_update_weights/contract.hpp"

using namespace muonwalk;

void update_weights(float* weights, const Flat& orthogonal, Shape full_shape, float lr, float weight_decay, float rms) {
  const double scale =
      static_cast<double>(lr) * rms * std::sqrt(static_cast<double>(std::max(full_shape.rows, full_shape.cols)));
  for (std::size_t i = 0; i < orthogonal.size(); ++i)
    weights[i] =
        static_cast<float>(weights[i] * (1.0 - static_cast<double>(lr) * weight_decay) - scale * orthogonal[i]);
}
