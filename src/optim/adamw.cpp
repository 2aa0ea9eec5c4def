#include "src/optim/adamw.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

namespace muonwalk {
namespace {

/// 1 − βᵗ in double precision, by plain multiplication, so that it has the same bits everywhere.
double one_minus_power(float beta, int step) {
  double power = 1;
  for (int i = 0; i < step; ++i) power *= static_cast<double>(beta);
  return 1 - power;
}

}  // namespace

void adamw(float* weights, const float* gradient, float* first_moment, float* second_moment, Index count, int step,
           const AdamWSettings& settings) {
  if (step < 1) throw std::invalid_argument("AdamW counts its steps from 1; the first call is step 1");
  const float keep = 1.0f - settings.lr * settings.weight_decay;
  const float step_size = static_cast<float>(settings.lr * std::sqrt(one_minus_power(settings.beta2, step)) /
                                             one_minus_power(settings.beta1, step));
  for (Index i = 0; i < count; ++i) {
    const float g = gradient[i];
    const float m = settings.beta1 * first_moment[i] + (1.0f - settings.beta1) * g;
    const float v = settings.beta2 * second_moment[i] + (1.0f - settings.beta2) * (g * g);
    first_moment[i] = m;
    second_moment[i] = v;
    const float decayed = weights[i] * keep;
    weights[i] = decayed - step_size * m / (std::sqrt(v) + settings.epsilon);
  }
}

AdamWState initial_adamw_state(Flat weights) {
  const std::size_t count = weights.size();
  return {std::move(weights), Flat(count), Flat(count)};
}

void adamw(AdamWState& state, const Flat& gradient, int step, const AdamWSettings& settings) {
  const std::size_t count = state.weights.size();
  if (gradient.size() != count || state.first_moment.size() != count || state.second_moment.size() != count)
    throw std::invalid_argument("AdamW takes a gradient and two moments of as many elements as there are weights");
  adamw(state.weights.data(), gradient.data(), state.first_moment.data(), state.second_moment.data(),
        static_cast<Index>(count), step, settings);
}

}  // namespace muonwalk
