// Lesson 16's --model and --price, through the program: the table of a model that nobody runs.
#include <doctest/doctest.h>

#include "src/optim/strategies/strategy.hpp"
#include "src/text/text.hpp"
#include "src/train/published_models.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_lesson;

TEST_CASE("--model: the table of every model, a line for each strategy, and who is the cheapest") {
  for (const std::string& model : model_names()) {
    CAPTURE(model);
    const Outcome outcome = run_lesson(LESSON, {"--model", model, "--dp", "64", "--tp", "8"});
    CHECK(outcome.exit_code == 0);
    const std::vector<std::string> lines = lines_of(outcome.out);
    const std::size_t last = 1 + strategies().size();  // who is the cheapest
    REQUIRE(lines.size() > last);
    CHECK(lines.size() <= last + 2);
    CHECK(lines[0].find("a step on dp 64 × tp 8") == 0);
    CHECK(lines[last].find("at 50 GB/s, 10 µs for each message and 400 TFLOP/s: (") == 0);
    for (const std::string& line : lines) CHECK(text_width(line) <= kColumns);
  }
}

TEST_CASE("--price changes the last column and the last line alone, and who is the cheapest with them") {
  const Outcome dear = run_lesson(LESSON, {"--model", "gpt2", "--dp", "8", "--tp", "2", "--price", "0.001,0,400"});
  const Outcome cheap = run_lesson(LESSON, {"--model", "gpt2", "--dp", "8", "--tp", "2", "--price", "1e6,0,0.001"});
  const std::vector<std::string> one = lines_of(dear.out), other = lines_of(cheap.out);
  const std::size_t last = 1 + strategies().size();
  REQUIRE(one.size() > last);
  REQUIRE(other.size() > last);
  for (std::size_t i = 1; i < last; ++i) {
    CAPTURE(one[i]);
    const std::string name = one[i].substr(0, 26);
    CHECK(other[i].substr(0, 26) == name);
    CHECK(one[i] != other[i]);
  }
  CHECK(one[last] != other[last]);
}

TEST_CASE("what can't be planned is refused in one sentence") {
  expect_refused({LESSON}, {{{"--model", "gpt9"}, "gpt9"},
                            {{"--model", ""}, "--model"},
                            {{"--model", "gpt2", "--tp", "7"}, "--tp 7 does not divide"},
                            {{"--model", "gpt2", "--pp", "2"}, "--pp 2"},
                            {{"--price", "50"}, "--price \"50\""},
                            {{"--price", ""}, "--price"},
                            {{"--pp", "2"}, "--pp 2"},
                            {{"--tp", "3"}, "--tp 3 does not divide"}});
}
