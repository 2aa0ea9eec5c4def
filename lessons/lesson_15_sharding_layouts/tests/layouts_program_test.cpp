// Lesson 15's --model, through the program: figures of models that nobody runs, without starting a rank.
#include <doctest/doctest.h>

#include "src/text/text.hpp"
#include "src/train/published_models.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;

namespace {

Outcome lesson(std::vector<std::string> options) {
  options.insert(options.begin(), LESSON);
  return run_program(options, 240);
}

}  // namespace

TEST_CASE("--model: the figures of every model, on more ranks than could be started, and nothing else") {
  for (const std::string& model : model_names()) {
    CAPTURE(model);
    const Outcome outcome = lesson({"--model", model, "--dp", "512", "--tp", "8"});
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
  const Outcome whole = lesson(model), half = lesson(halves);
  CHECK(whole.exit_code == 0);
  CHECK(half.exit_code == 0);
  CHECK(whole.out != half.out);
  CHECK(lines_of(whole.out)[0] == lines_of(half.out)[0]);
}

TEST_CASE(
    "what can't be planned is refused in one sentence: a model that is not known, a TP that does not divide, stages") {
  for (const auto& [options, words] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--model", "gpt9"}, "gpt9"},
           {{"--model", ""}, "--model"},
           {{"--model", "gpt2", "--tp", "7"}, "--tp 7 does not divide"},
           {{"--model", "gpt2", "--dp", "70000"}, "70000"},
           {{"--model", "gpt2", "--pp", "2"}, "--pp 2"},
           {{"--pp", "2"}, "--pp 2"},
           {{"--tp", "3"}, "--tp 3 does not divide"}}) {
    const Outcome outcome = lesson(options);
    CAPTURE(words);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.err.find(words) != std::string::npos);
  }
}
