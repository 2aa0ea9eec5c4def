#include "lessons/lesson_20_pretrain/learning_rate.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "src/errors.hpp"

namespace muonwalk {
namespace {

// cos(π x) for x from 0 to 1/2, by its power series, from the smallest term up: after the one with y²⁴ it is exact to
// the last bits of a double. A library's cosine may differ from one processor to the next.
double cosine_of_small_part(double x) {
  constexpr double pi = 3.141592653589793;
  const double y_squared = (pi * x) * (pi * x);
  double sum = 1;
  for (int n = 24; n > 0; n -= 2) sum = 1 - y_squared * sum / static_cast<double>(n * (n - 1));
  return sum;
}

// The same for x up to 1; exactly 0 at 1/2 and exactly −1 at 1.
double cosine_of_part(double x) {
  if (x == 0.5) return 0;
  return x < 0.5 ? cosine_of_small_part(x) : -cosine_of_small_part(1 - x);
}

}  // namespace

void require_sensible(const WarmupCosine& schedule) {
  if (schedule.steps < 1)
    throw UsageError(fmt::format("--steps {} makes no sense for a run; it takes at least 1", schedule.steps));
  if (schedule.warmup < 0 || schedule.warmup >= schedule.steps)
    throw UsageError(fmt::format("--warmup {} makes no sense with --steps {}; it takes a whole number from 0 to {}",
                                 schedule.warmup, schedule.steps, schedule.steps - 1));
  if (!(schedule.final_fraction >= 0 && schedule.final_fraction <= 1))
    throw UsageError(
        fmt::format("--final-rate {:g} makes no sense as a part of the learning rate; it takes a number "
                    "from 0 to 1, for example 0.1",
                    schedule.final_fraction));
}

float learning_rate_factor(const WarmupCosine& schedule, int step) {
  require_sensible(schedule);
  if (step < 1 || step > schedule.steps)
    throw std::out_of_range(fmt::format("the run has the steps 1 to {}, and was asked for the learning rate of step {}",
                                        schedule.steps, step));
  if (step <= schedule.warmup) return static_cast<float>(static_cast<double>(step) / schedule.warmup);
  const double x = static_cast<double>(step - schedule.warmup) / (schedule.steps - schedule.warmup);
  const double last = static_cast<double>(schedule.final_fraction);
  return static_cast<float>(last + (1 - last) * (0.5 * (1 + cosine_of_part(x))));
}

}  // namespace muonwalk
