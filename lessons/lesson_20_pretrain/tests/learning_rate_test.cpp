#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "lessons/lesson_20_pretrain/pretraining.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

TEST_CASE("learning_rate_factor: rises to 1 in the last step of the warm-up, falls to the final part in the last one") {
  for (const int steps : {1, 2, 3, 10, 97, 1000, 100000})
    for (const int warmup : {0, 1, 2, 9, 50, 999})
      for (const float last : {0.0f, 0.1f, 0.5f, 1.0f}) {
        if (warmup >= steps) continue;
        CAPTURE(steps);
        CAPTURE(warmup);
        const WarmupCosine schedule{warmup, steps, last};
        if (warmup > 0) REQUIRE(learning_rate_factor(schedule, warmup) == 1);
        REQUIRE(learning_rate_factor(schedule, steps) == last);
        float before = 0;
        const int stride = steps > 1000 ? 37 : 1;
        for (int step = 1; step <= steps; step += stride) {
          const float factor = learning_rate_factor(schedule, step);
          const double x = static_cast<double>(step - warmup) / (steps - warmup);
          const double expected = step <= warmup ? static_cast<double>(step) / warmup
                                                 : last + (1.0 - last) * 0.5 * (1 + std::cos(std::acos(-1.0) * x));
          REQUIRE(std::abs(factor - expected) <= 6e-8);  // one rounding to float32
          if (step <= warmup) REQUIRE(factor > before);
          if (step - stride >= warmup && step > stride) REQUIRE(factor <= before);
          before = factor;
        }
      }
}

TEST_CASE("learning_rate_factor: the bits of some steps, which no processor may change") {
  // cos(π/3) = 1/2 and cos(2π/3) = −1/2: where the series would be off by a bit, it would show.
  CHECK(learning_rate_factor({0, 3, 0.0f}, 1) == 0.75f);
  CHECK(learning_rate_factor({0, 3, 0.0f}, 2) == 0.25f);
  CHECK(learning_rate_factor({0, 4, 0.0f}, 1) == 0x1.b504f4p-1f);
  CHECK(learning_rate_factor({0, 4, 0.0f}, 3) == 0x1.2bec34p-3f);
}

TEST_CASE("learning_rate_factor: nonsense is refused in a sentence that says what would work") {
  CHECK(usage_error([] {
          learning_rate_factor({0, 0}, 1);
        }) == "--steps 0 makes no sense for a run; it takes at least 1");
  for (const auto& [schedule, as_said] : {std::pair(WarmupCosine{5, 5, 0.1f}, "5 of 5 steps, then fall to 0.1"),
                                          {{-1, 5, 0.1f}, "-1 of 5 steps, then fall to 0.1"},
                                          {{0, 5, -0.1f}, "0 of 5 steps, then fall to -0.1"},
                                          {{0, 5, 1.5f}, "0 of 5 steps, then fall to 1.5"},
                                          {{0, 5, NAN}, "0 of 5 steps, then fall to nan"}})
    CHECK_THROWS_WITH_AS(learning_rate_factor(schedule, 1),
                         ("a learning rate was to rise in " + std::string(as_said) +
                          " times its highest; it can rise in 0 to 4 of them, and fall to a share from 0 to 1")
                             .c_str(),
                         std::invalid_argument);
  for (const int step : {0, 6})
    CHECK_THROWS_WITH_AS(
        learning_rate_factor({1, 5}, step),
        ("the run has the steps 1 to 5, and was asked for the learning rate of step " + std::to_string(step)).c_str(),
        std::out_of_range);
}
