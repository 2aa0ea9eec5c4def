// Lesson 12's own options, through the program.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/ranks/expect_refused.hpp"

using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;

namespace {

// Ranks that are fibers, and three steps: there are many runs.
Outcome matched_rms(std::vector<std::string> options) {
  options.insert(options.begin(), {LESSON, "--world", "fibers", "--steps", "3"});
  return run_program(options, 120);
}

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE(
    "lesson 12: every recipe, scale, set of coefficients and split has its reference's bits, in both precisions") {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--recipe", "moonshot", "--scale", "ratio"},
                                             {"--recipe", "kellerjordan", "--coefficients", "polar_express"},
                                             {"--recipe", "torch", "--split-qkv", "none"},
                                             {"--recipe", "emerging", "--split-qkv", "heads"},
                                             {"--recipe", "dion", "--scale", "none", "--coefficients", "aol"},
                                             {"--scale", "largest", "--tp", "4"},
                                             {"--scale", "tall", "--dp", "3"},
                                             {"--coefficients", "deepseekv4", "--tp", "1", "--dp", "1"},
                                             {"--coefficients", "simple", "--products", "chain"},
                                             {"--coefficients", "quintic", "--scale", "matched", "--seed", "9"}})
    for (const char* precision : {"fp32", "bf16"}) {
      std::vector<std::string> all = options;
      all.insert(all.end(), {"--precision", precision});
      const Outcome outcome = matched_rms(all);
      CAPTURE(outcome.out);
      CAPTURE(outcome.err);
      CHECK(outcome.exit_code == 0);
      CHECK(says(outcome.out, "lesson_12_matched_rms: OK\n"));
      const bool one = options[0] == "--recipe";
      CHECK(says(outcome.out, "torch, 3 steps") == (!one || options[1] == "torch"));
      CHECK(says(outcome.out, "dion, 3 steps") == (!one || options[1] == "dion"));
    }
}

TEST_CASE("lesson 12: a bug that a layout gives no room to is not caught there") {
  // One TP rank has the whole matrix, so that a split decided on its rows is right.
  CHECK(matched_rms({"--bug", "local_rows", "--tp", "1"}).exit_code == 0);
  CHECK(matched_rms({"--bug", "local_rows", "--tp", "2"}).exit_code == 1);
  CHECK(matched_rms({"--bug", "local_rows", "--tp", "4", "--split-qkv", "heads"}).exit_code == 1);
  CHECK(matched_rms({"--bug", "missing_factor", "--recipe", "torch"}).exit_code == 0);
  CHECK(matched_rms({"--bug", "missing_factor", "--recipe", "torch", "--scale", "matched"}).exit_code == 1);
}

TEST_CASE("lesson 12: what can't work is one sentence and exit 2") {
  expect_refused(
      {LESSON},
      {{{"--recipe", "nadam"},
        "--recipe \"nadam\" is not known; it takes moonshot, kellerjordan, torch, emerging, dion, torch-rms, "},
       {{"--recipe", "normuon"}, "--recipe normuon keeps a mean of squares for whole matrices"},
       {{"--recipe", ""}, "--recipe '' is empty"},
       {{"--scale", "huge"}, "--scale \"huge\" is not known"},
       {{"--coefficients", "best"}, "--coefficients \"best\" are not known"},
       {{"--split-qkv", "two"}, "--split-qkv \"two\" is not known"},
       {{"--steps", "0"}, "--steps 0 is too few or too many; it takes 1 to 100"},
       {{"--steps", "101"}, "--steps 101 is too few or too many"},
       {{"--pp", "2"}, "--pp 2 has no second stage here"},
       {{"--tp", "3"}, "--tp 3 does not divide the 20 rows of parameter \"qkv\""}});
}
