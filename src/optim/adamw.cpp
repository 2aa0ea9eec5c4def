#include "src/optim/adamw.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk {
namespace {

/// 1 − βᵗ in double precision, by plain multiplication, so that it has the same bits everywhere.
double one_minus_power(float beta, int step) {
  double power = 1;
  for (int i = 0; i < step; ++i) power *= static_cast<double>(beta);
  return 1 - power;
}

void require_knob(bool sensible, const char* option, float value, const char* takes) {
  if (!sensible) throw UsageError(fmt::format("{} {:g} makes no sense for AdamW; it takes {}", option, value, takes));
}

}  // namespace

void require_sensible(const AdamWSettings& settings) {
  constexpr float kMost = 1e6f;  // larger than any that was ever meant, and no infinity
  const auto from_zero = [](float value) { return value >= 0 && value <= kMost; };
  const auto beta = [](float value) { return value >= 0 && value < 1; };
  require_knob(from_zero(settings.lr), "--adamw-lr", settings.lr, "a number of at least 0, for example 0.001");
  require_knob(from_zero(settings.weight_decay), "--adamw-decay", settings.weight_decay, "a number of at least 0");
  require_knob(beta(settings.beta1), "--adamw-beta1", settings.beta1, "a number from 0 to below 1");
  require_knob(beta(settings.beta2), "--adamw-beta2", settings.beta2, "a number from 0 to below 1");
  require_knob(settings.epsilon > 0 && settings.epsilon <= kMost, "--adamw-epsilon", settings.epsilon,
               "a number above 0, for example 1e-08");
}

void adamw(float* weights, const float* gradient, float* first_moment, float* second_moment, Index count, int step,
           const AdamWSettings& settings) {
  if (step < 1) throw std::invalid_argument("AdamW counts its steps from 1; the first call is step 1");
  const float keep = 1.0f - settings.lr * settings.weight_decay;
  // The root of the second bias correction goes into the step size, or under the root of v. Dividing by 1 changes no
  // bit, so one loop serves both forms.
  const double correction = std::sqrt(one_minus_power(settings.beta2, step));
  const bool under_root = settings.epsilon_stands == Epsilon::outside_corrected_root;
  const float root_over = under_root ? static_cast<float>(correction) : 1.0f;
  const float step_size =
      static_cast<float>(settings.lr * (under_root ? 1 : correction) / one_minus_power(settings.beta1, step));
  const float beta1 = settings.beta1, beta2 = settings.beta2, epsilon = settings.epsilon;
  for (Index i = 0; i < count; ++i) {
    const float g = gradient[i];
    const float m = beta1 * first_moment[i] + (1.0f - beta1) * g;
    const float v = beta2 * second_moment[i] + (1.0f - beta2) * (g * g);
    first_moment[i] = m;
    second_moment[i] = v;
    const float decayed = weights[i] * keep;
    weights[i] = decayed - step_size * m / (std::sqrt(v) / root_over + epsilon);
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
