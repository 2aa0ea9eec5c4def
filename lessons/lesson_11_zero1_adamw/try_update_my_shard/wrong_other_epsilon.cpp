// fails: wrong values
#include <cmath>

#include "lessons/lesson_11_zero1_adamw/try_update_my_shard/contract.hpp"

using namespace muonwalk;

void update_my_shard(Flat& weights, Range mine, const Flat& sum, Flat& first_moment, Flat& second_moment, int step,
                     const AdamWSettings& settings) {
  double power1 = 1, power2 = 1;
  for (int t = 0; t < step; ++t) {
    power1 *= settings.beta1;
    power2 *= settings.beta2;
  }
  const float keep = 1.0f - settings.lr * settings.weight_decay;
  const float root = static_cast<float>(std::sqrt(1 - power2));
  const float s = static_cast<float>(settings.lr / (1 - power1));
  for (Index i = 0; i < mine.size(); ++i) {
    const float g = sum[i];
    float &w = weights[mine.begin + i], &m = first_moment[i], &v = second_moment[i];
    m = settings.beta1 * m + (1.0f - settings.beta1) * g;
    v = settings.beta2 * v + (1.0f - settings.beta2) * (g * g);
    w = w * keep - s * m / (std::sqrt(v) / root + settings.epsilon);
  }
}
