// Lesson 16's --model and --price, through the program: the table of a model that nobody runs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "src/optim/strategies/strategy.hpp"
#include "src/text/text.hpp"
#include "src/train/published_models.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_lesson;

namespace {

// The heading of the table, below the lines on the batch.
std::vector<std::string>::iterator heading_of(std::vector<std::string>& lines) {
  return std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return line.find("a step on ") == 0; });
}

// What it prints of llama-7b on dp 64 × tp 8, as one line.
std::string of_llama(std::vector<std::string> words) {
  words.insert(words.begin(), {"--model", "llama-7b", "--dp", "64", "--tp", "8", "--precision", "bf16"});
  const Outcome outcome = run_lesson(LESSON, words);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  std::string flat;
  for (const std::string& line : lines_of(outcome.out)) flat += line.substr(line.find_first_not_of(' ')) + " ";
  return flat;
}

}  // namespace

TEST_CASE(
    "--cluster: links of its own for dp and tp; (g) wins time where TP is wide, and the input that decides is named") {
  const std::string ndr = of_llama({"--cluster", "h100-ndr"});
  CHECK(ndr.find("at 48.5 GB/s over dp and 370.8 over tp, 14 µs and 3.4 for each message") != std::string::npos);
  CHECK(ndr.find("(g) distributed Gram is cheaper than (") != std::string::npos);
  CHECK(ndr.find(" TFLOP/s decides, and they break even at") != std::string::npos);
  // At the price of before it breaks even at 426 TFLOP/s: on one side of that it is (g), on the other (d).
  CHECK(of_llama({"--price", "50,10,400"}).find("break even at 426 TFLOP/s") != std::string::npos);
  CHECK(of_llama({"--price", "50,10,420"}).find("(g) distributed Gram is cheaper than (d)") != std::string::npos);
  CHECK(of_llama({"--price", "50,10,432"}).find("(d) owner, by work is cheaper than (g)") != std::string::npos);
  CHECK(ndr != of_llama({"--cluster", "rtx4090-100gbe"}));
}

TEST_CASE("--batch-tokens: the first line says whose batch it is, and half of it doubles the share") {
  const auto share = [](const std::string& text) {
    const std::size_t at = text.find(" takes ");
    REQUIRE(at != std::string::npos);
    return std::stod(text.substr(at + 7));
  };
  const std::string whole = of_llama({}), half = of_llama({"--batch-tokens", "2097152"});
  CHECK(whole.find("llama-7b, 4,194,304 tokens per step (1,024 sequences of 4,096), the default, which LLaMA has") ==
        0);
  CHECK(half.find("llama-7b, 2,097,152 tokens per step (512 sequences of 4,096), where 4,194,304 is what LLaMA") == 0);
  CHECK(std::abs(share(half) / share(whole) - 2) < 0.02);
}

TEST_CASE("--model: the table of every model, a line for each strategy, and who is the cheapest") {
  for (const std::string& model : model_names()) {
    CAPTURE(model);
    const Outcome outcome = run_lesson(LESSON, {"--model", model, "--dp", "64", "--tp", "8"});
    CHECK(outcome.exit_code == 0);
    std::vector<std::string> lines = lines_of(outcome.out);
    CHECK(lines[0].find(model + ", ") == 0);
    CHECK(lines[0].find(" tokens per step (") != std::string::npos);
    lines.erase(lines.begin(), heading_of(lines));
    const std::size_t last = 1 + strategies().size();  // who is the cheapest
    REQUIRE(lines.size() > last + 3);
    CHECK(lines[0].find("a step on dp 64 × tp 8") == 0);
    CHECK(lines[last].find("at 50 GB/s, 10 µs for each message and 400 TFLOP/s: (") == 0);
    for (const std::string& line : lines) CHECK(text_width(line) <= kColumns);
  }
}

TEST_CASE("--price changes the last column and the last line alone, and who is the cheapest with them") {
  const Outcome dear = run_lesson(LESSON, {"--model", "gpt2", "--dp", "8", "--tp", "2", "--price", "0.001,0,400"});
  const Outcome cheap = run_lesson(LESSON, {"--model", "gpt2", "--dp", "8", "--tp", "2", "--price", "1e6,0,0.001"});
  std::vector<std::string> one = lines_of(dear.out), other = lines_of(cheap.out);
  for (std::vector<std::string>* lines : {&one, &other}) lines->erase(lines->begin(), heading_of(*lines));
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
                            {{"--cluster", "moon"}, "no cluster is called \"moon\""},
                            {{"--batch-tokens", "4096"}, "try --model llama-7b --batch-tokens 4194304"},
                            {{"--model", "gpt2", "--batch-tokens", "1000"}, "--batch-tokens 1,000"},
                            {{"--tp", "3"}, "--tp 3 does not divide"}});
}
