// Lesson 15's --model, through the program: figures of models that nobody runs, without starting a rank.
#include <doctest/doctest.h>

#include "src/text/text.hpp"
#include "src/train/published_models.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_lesson;

TEST_CASE("--model: the figures of every model, on more ranks than could be started, and nothing else") {
  for (const std::string& model : model_names()) {
    CAPTURE(model);
    const Outcome outcome = run_lesson(LESSON, {"--model", model, "--dp", "512", "--tp", "8"});
    CHECK(outcome.exit_code == 0);
    const std::vector<std::string> lines = lines_of(outcome.out);
    REQUIRE(lines.size() == 9);
    CHECK(lines[0].find("matrices on dp 512 × tp 8") != std::string::npos);
    for (const std::string& line : lines) CHECK(text_width(line) <= kColumns);
    MESSAGE(model << ": " << outcome.seconds << " s");
  }
}

TEST_CASE("--precision bf16 halves what is gathered, and nothing else") {
  const std::vector<std::string> model = {"--model", "gpt2", "--dp", "8", "--tp", "1"};
  std::vector<std::string> halves = model;
  halves.insert(halves.end(), {"--precision", "bf16"});
  const Outcome whole = run_lesson(LESSON, model), half = run_lesson(LESSON, halves);
  CHECK(whole.exit_code == 0);
  CHECK(half.exit_code == 0);
  CHECK(whole.out != half.out);
  CHECK(lines_of(whole.out)[0] == lines_of(half.out)[0]);
}

TEST_CASE(
    "what can't be planned is refused in one sentence: a model that is not known, a TP that does not divide, stages") {
  expect_refused({LESSON}, {{{"--model", "gpt9"}, "gpt9"},
                            {{"--model", ""}, "--model"},
                            {{"--model", "gpt2", "--tp", "7"}, "--tp 7 does not divide"},
                            {{"--model", "gpt2", "--dp", "70000"}, "70000"},
                            {{"--model", "gpt2", "--pp", "2"}, "--pp 2"},
                            {{"--ep", "2"}, "add --model qwen3-30b"},
                            {{"--model", "gpt2", "--ep", "2"}, "gpt2 has none"},
                            {{"--model", "qwen3-30b", "--dp", "12", "--ep", "8"}, "try --dp 16"},
                            {{"--pp", "2"}, "--pp 2"},
                            {{"--tp", "3"}, "--tp 3 does not divide"}});
}
