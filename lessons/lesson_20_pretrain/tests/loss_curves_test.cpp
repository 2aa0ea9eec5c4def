// What lesson 20 makes of two runs' losses: when each reaches a loss, the lead, and the tables.
#include "lessons/lesson_20_pretrain/loss_curves.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "src/text/text.hpp"
#include "tests/near.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// A run whose loss begins at 6 and falls by `slope` in each step; validated every ten steps.
LossCurve falling(const std::string& name, int steps, float slope) {
  LossCurve curve{name, {}, {}};
  curve.validations.push_back({0, 6, 7});
  for (int step = 1; step <= steps; ++step) {
    curve.training.push_back(6 - slope * static_cast<float>(step));
    if (step % 10 == 0) curve.validations.push_back({step, 6 - slope * static_cast<float>(step), 7});
  }
  return curve;
}

}  // namespace

TEST_CASE("a run that falls twice as fast has a lead of 2 on held-out text") {
  const LossCurve slow = falling("slow", 100, 0.01f), fast = falling("fast", 100, 0.02f);
  for (const float loss : {5.95f, 5.875f, 5.5f, 5.25f, 5.01f}) {
    INFO("loss ", loss);
    const auto first = reached_held_out(slow, loss), second = reached_held_out(fast, loss);
    REQUIRE((first && second));
    CHECK(*first / *second == near(2, 0.001));
    CHECK(*first == near((6 - loss) / 0.01, 0.001));
  }
  // The table says the same of each loss that both come to on the held-out text, and of none that only one comes to.
  std::istringstream lines(lead_table(slow, fast));
  int twice = 0;
  for (std::string line; std::getline(lines, line);)
    twice += line.size() > 14 && line.substr(line.size() - 13) == " 2.00  +100 %";
  CHECK(twice == 5);
}

TEST_CASE("the training loss is a mean of ten steps, which a single lucky batch does not decide") {
  LossCurve curve = falling("run", 40, 0.01f);
  curve.training[4] = 0;
  CHECK(reached_in_training(curve, 5.0f) == std::nullopt);
  // The mean over steps s − 9 to s is that of the middle: 6 − 0.01 · (s − 4.5).
  CHECK(reached_in_training(falling("run", 40, 0.01f), 5.8001f) == near(25, 1e-5));
  CHECK(reached_in_training(falling("run", 9, 0.01f), 6) == std::nullopt);
  CHECK(*reached_in_training(falling("run", 10, 0.01f), 6) == 10);
}

TEST_CASE("a loss that one of them never reaches has no lead") {
  const LossCurve slow = falling("slow", 50, 0.01f), fast = falling("fast", 50, 0.02f);
  CHECK_FALSE(reached_held_out(slow, 5.2f));
  CHECK(reached_held_out(fast, 5.2f));
  CHECK_FALSE(reached_held_out(fast, 4.0f));
  CHECK(lead_table(slow, fast).find("never") != std::string::npos);
  CHECK(grid_line(Grid().dp(2), {slow, fast}, true)
            .find("slow 5.5000, held out 5.5000 · fast 5.0000, held out 5.0000 · all bits ") != std::string::npos);
  CHECK(grid_line(Grid().dp(2), {slow}, false).find("dp 2 × tp 1 · slow 5.5000, held out 5.5000 · other bits ") == 0);
  CHECK(grid_line(Grid().dp(2), {slow}, false).find("✘") != std::string::npos);
  CHECK(grid_line(Grid().dp(2), {slow}, true).find("✔") != std::string::npos);
}

TEST_CASE("the levels are those that both come to, and the lowest of all") {
  const std::vector<float> levels = loss_levels({falling("slow", 50, 0.011f), falling("fast", 50, 0.0211f)});
  REQUIRE(levels.size() == 6);
  CHECK(levels[4] == near(5.45, 1e-5));  // the slow one ends at 5.45
  CHECK(levels[5] == near(4.95, 1e-5));  // the fast one at 4.945
  CHECK(std::is_sorted(levels.rbegin(), levels.rend()));
  for (const float level : levels) CHECK(std::abs(level * 20 - std::round(level * 20)) < 1e-3);
  CHECK(loss_levels({falling("a", 50, 0.01f), falling("b", 50, 0.01f)}).size() == 5);
}

TEST_CASE("tables fit on the screen") {
  const std::vector<LossCurve> curves = {falling("AdamW", 100, 0.01f), falling("Muon + AdamW", 100, 0.02f)};
  for (const std::string& table : {loss_table(curves), lead_table(curves[0], curves[1])}) {
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= kColumns);
  }
}

TEST_CASE("exponential smoothing moves a curve that falls evenly by (1 − α) / α steps, once it has begun") {
  for (const double alpha : {0.5, 0.2, 0.05}) {
    CAPTURE(alpha);
    const std::vector<float> losses = falling("run", 600, 0.01f).training;
    const std::vector<float> late = smoothed_exponentially(losses, alpha);
    REQUIRE(late.size() == losses.size());
    CHECK(late[0] == losses[0]);
    CHECK(late.back() == near(losses.back() + 0.01 * (1 - alpha) / alpha, 1e-4));
    double sum = 0, weights = 0, weight = 1;  // of step 7, as pandas has it: Σ (1 − α)^i x / Σ (1 − α)^i
    for (int i = 6; i >= 0; --i, weight *= 1 - alpha) sum += weight * double(losses[i]), weights += weight;
    CHECK(late[6] == near(sum / weights, 1e-6));
  }
  const std::vector<float> same(20, 3.0f);
  CHECK(smoothed_exponentially(same, 0.1) == same);
  CHECK(smoothed_exponentially({}, 0.1).empty());
}

TEST_CASE("leading steps: the first lower loss of the other run, over the step; and smoothing makes them less") {
  const std::vector<float> slow = falling("slow", 400, 0.01f).training, fast = falling("fast", 100, 0.02f).training;
  for (const int step : {10, 50, 99}) {
    // In step s the fast one is where the slow one is in step 2 s; the first that is lower is one further on.
    CHECK(*leading_steps(slow, fast, step) == near((2 * step + 1 - step) / double(step), 1e-6 + 1.0 / step));
    const auto late = leading_steps(smoothed_exponentially(slow, 0.05), smoothed_exponentially(fast, 0.05), step);
    REQUIRE(late);
    CHECK(*late >= *leading_steps(slow, fast, step) - 1);  // never below zero
  }
  // Late by w steps each, 2 s + w is set beside s + w. Here at the same loss, so what is counted shrinks.
  const double raw = *leading_steps(slow, fast, 90);
  std::vector<float> moved_slow(19, 6.0f), moved_fast(19, 6.0f);
  moved_slow.insert(moved_slow.end(), slow.begin(), slow.end());
  moved_fast.insert(moved_fast.end(), fast.begin(), fast.end());
  CHECK(*leading_steps(moved_slow, moved_fast, 90 + 19) == near((2 * 90 + 19 - 109) / 109.0, 0.03));
  CHECK(*leading_steps(moved_slow, moved_fast, 90 + 19) < raw);
  CHECK_FALSE(leading_steps(falling("slow", 10, 0.01f).training, fast, 50));
  CHECK_THROWS_AS(leading_steps(slow, fast, 101), std::out_of_range);
}

TEST_CASE("spread: mean, smallest and largest; of seeds behind each step, and of leads that all of them have") {
  CHECK(spread_of({3, 1, 2}).mean == near(2, 1e-12));
  CHECK(spread_of({3, 1, 2}).smallest == 1);
  CHECK(spread_of({3, 1, 2}).largest == 3);
  CHECK_THROWS_AS(spread_of({}), std::out_of_range);
  const std::vector<std::vector<LossCurve>> seeds = {{falling("AdamW", 60, 0.01f), falling("Muon + AdamW", 60, 0.02f)},
                                                     {falling("AdamW", 60, 0.01f), falling("Muon + AdamW", 60, 0.04f)}};
  const std::string table = seeds_table(seeds);
  CHECK(table.find("60 ") != std::string::npos);
  CHECK(table.find("5.4000    5.4000   5.4000 ") != std::string::npos);
  CHECK(table.find(" 3.6000   4.8000\n") != std::string::npos);
  CHECK(table.find("3.00      2.00     4.00") != std::string::npos);  // leads of 2 and of 4
  CHECK(seeds_table({{falling("AdamW", 60, 0.01f)}}).find("lead") == std::string::npos);
}

TEST_CASE("tables of leads and of what grows inside") {
  std::vector<LossCurve> curves = {falling("AdamW", 100, 0.01f), falling("Muon + AdamW", 100, 0.02f)};
  for (LossCurve& curve : curves)
    for (Validation& each : curve.validations) each.largest_score = 1.5f, each.output_rms = 0.25f;
  const std::string leads = leading_steps_table(curves[0], curves[1]), inside = inside_table(curves);
  for (const std::string& table : {leads, inside, seeds_table({curves, curves, curves})}) {
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= kColumns);
  }
  CHECK(leads.find("never") != std::string::npos);
  CHECK(leads.find("α = 0.005") != std::string::npos);
  CHECK(leads.find("█") < leads.find("▁"));  // both fall
  CHECK(inside.find("1.500") != std::string::npos);
  CHECK(inside.find("0.250") != std::string::npos);
}
