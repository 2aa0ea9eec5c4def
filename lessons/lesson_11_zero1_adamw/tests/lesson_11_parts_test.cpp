// The two texts that lesson 11 prints besides its steps: who steps what, and how far two forms of AdamW get apart.
#include <doctest/doctest.h>

#include <cmath>

#include "lesson_11_zero1_adamw.hpp"
#include "src/errors.hpp"
#include "src/text/text.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace lesson_11;
using muonwalk::testing::lines_of;

namespace {

AdamWSettings settings_with(float beta2, float epsilon) {
  AdamWSettings settings;
  settings.beta2 = beta2;
  settings.epsilon = epsilon;
  settings.weight_decay = 0;
  return settings;
}

}  // namespace

TEST_CASE("who steps what: a line per parameter with its group's optimizer and settings, and two refusals by name") {
  RankInfo rank;
  rank.grid = Grid().dp(2).tp(2);
  const std::string text = routing_table(rank);
  CAPTURE(text);
  const std::vector<std::string> lines = lines_of(text);
  REQUIRE(lines.size() >= 10);
  const std::string muon = "0.1, 0.1, 0.9", tables = "0.02, 0.1, 0.9 and 0.95", gains = "0.01, 0, 0.9 and 0.999";
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"embed", tables}, {"q", muon}, {"o", muon}, {"up", muon}, {"down", muon}, {"norm", gains}, {"lm_head", tables}};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::string& line = lines[i + 1];
    CHECK(line.rfind(expected[i].first + " ", 0) == 0);
    CHECK(line.find(expected[i].second) == line.size() - expected[i].second.size());
    const bool of_muon = expected[i].second == muon;
    CHECK((line.find("ZeRO-1 AdamW") == std::string::npos) == of_muon);
    CHECK((line.find("Muon") != std::string::npos) == of_muon);
  }
  CHECK(text.find("without the last group: parameter \"norm\" with 1 dimension is claimed by no group") !=
        std::string::npos);
  CHECK(text.find("without the exceptions of the first: parameter \"embed\" is claimed by the groups \"hidden") !=
        std::string::npos);
  for (const std::string& line : lines) CHECK(text_width(line) <= 100);
}

// In the first step the corrections leave g / (|g| + ε) in the one form and g / (|g| + ε / √(1 − β₂)) in the other.
TEST_CASE("forms of AdamW: after one step they are apart by what the formula says, for gradients around epsilon") {
  const AdamWSettings settings = settings_with(0.99f, 1e-4f);  // ε counts ten times its size in the first step
  for (const float size : {1e-2f, 1e-3f, 1e-4f, 1e-5f}) {
    double most = 0;
    // The largest of |g| / (|g| + ε) − |g| / (|g| + 10 ε) over all |g| up to 2√3 · size.
    for (int i = 1; i <= 10000; ++i) {
      const double g = i / 10000.0 * 2 * std::sqrt(3.0) * static_cast<double>(size);
      most = std::max(most, g / (g + 1e-4) - g / (g + 1e-3));
    }
    const std::vector<double> apart = forms_apart(settings, size, {1}, 1);
    REQUIRE(apart.size() == 1);
    CHECK(apart[0] <= most * 1.001);
    CHECK(apart[0] >= most / 4);
  }
}

TEST_CASE("forms of AdamW: without much of an epsilon they are the same up to rounding, and with one they part") {
  const std::vector<int> steps = {1, 10, 100};
  for (const double apart : forms_apart(settings_with(0.999f, 1e-30f), 1, steps, 1)) CHECK(apart < 1e-3);
  const std::vector<double> parted = forms_apart(settings_with(0.999f, 1e-8f), 1e-8f, steps, 1);
  CHECK(parted[0] > 0.3);
  CHECK(parted[1] > parted[0]);
  CHECK(parted[2] > parted[1]);
  // As far after 10 steps, whether anybody looked after the first one or not.
  CHECK(forms_apart(settings_with(0.999f, 1e-8f), 1e-8f, {10}, 1)[0] == parted[1]);
  // Learning rates are the unit; weights begin at 0, so nothing else depends on them.
  AdamWSettings twice = settings_with(0.999f, 1e-8f);
  twice.lr *= 2;
  CHECK(forms_apart(twice, 1e-8f, {10}, 1)[0] == near(parted[1], 1e-4));
}

TEST_CASE("forms of AdamW: the table has a line per size, and a column per step") {
  const std::string text = epsilon_table(settings_with(0.99f, 1e-8f), {1, 1e-8f}, {1, 1000}, 1);
  CAPTURE(text);
  const std::vector<std::string> lines = lines_of(text);
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].find(" 1 step ") != std::string::npos);
  CHECK(lines[0].find(" 1000 steps") != std::string::npos);
  CHECK(lines[1].find(" 1 ") != std::string::npos);
  CHECK(lines[2].find("1e-08") != std::string::npos);
  for (const std::string& line : lines) CHECK(text_width(line) <= 100);
}
