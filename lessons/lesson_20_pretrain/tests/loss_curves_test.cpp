// What lesson 20 makes of two runs' losses: when each reaches a loss, the lead, the tables and the picture.
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
  for (std::string line; std::getline(lines, line);) twice += line.substr(line.find_last_of(' ') + 1) == "2.00";
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

TEST_CASE("tables fit on the screen, and the picture names what it shows") {
  const std::vector<LossCurve> curves = {falling("AdamW", 100, 0.01f), falling("Muon + AdamW", 100, 0.02f)};
  for (const std::string& table : {loss_table(curves), lead_table(curves[0], curves[1])}) {
    std::istringstream lines(table);
    for (std::string line; std::getline(lines, line);) CHECK(text_width(line) <= kColumns);
  }
  const std::string svg = curves_svg("Losses", curves);
  CHECK(svg.find("<svg") == 0);
  CHECK(svg.find("Muon + AdamW, held-out text") != std::string::npos);
  CHECK(svg.find("prefers-color-scheme") != std::string::npos);
  CHECK(svg.find("nan") == std::string::npos);
  LossCurve unvalidated = curves[0], untrained = curves[0];
  unvalidated.validations.clear();
  untrained.training.clear();
  for (const std::vector<LossCurve>& wrong : {std::vector<LossCurve>{}, {unvalidated}, {untrained}})
    CHECK_THROWS_WITH_AS(curves_svg("Losses", wrong),
                         "a picture of losses needs at least one run with a step and a validation",
                         std::invalid_argument);
}
