// The lesson through the program, on other grids: what its ranks count is what was planned, whatever the layout; and a
// model, for which it starts none.
#include <doctest/doctest.h>

#include "src/text/text.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using muonwalk::testing::end_text;
using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_lesson;

TEST_CASE(
    "lesson 14: any grid, bucket size, precision and engine: the bits of the reference, and the bytes of the plan") {
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--dp", "1", "--tp", "1"},
           {"--dp", "3", "--tp", "1"},
           {"--dp", "8", "--tp", "1", "--bucket-capacity", "100000"},
           {"--dp", "5", "--tp", "1", "--bucket-capacity", "1"},
           {"--dp", "2", "--tp", "4", "--bucket-capacity", "0", "--precision", "bf16"},
           {"--dp", "1", "--tp", "4", "--products", "chain"},
           {"--dp", "2", "--tp", "2", "--precision", "bf16", "--products", "chain", "--threads", "2"},
           {"--dp", "2", "--tp", "2", "--pp", "2", "--seed", "7"}}) {
    std::string said;
    for (const std::string& option : options) said += option + " ";
    CAPTURE(said);
    std::vector<std::string> with_world = options;
    with_world.insert(with_world.end(), {"--world", "fibers"});
    const Outcome outcome = run_lesson(LESSON, with_world);
    CAPTURE(outcome.out);
    CAPTURE(outcome.err);
    CHECK_MESSAGE(outcome.exit_code == 0, end_text(outcome));
    CHECK(outcome.out.find("✘") == std::string::npos);
    for (const std::string& line : lines_of(outcome.out)) CHECK(text_width(line) <= kColumns);
  }
}

TEST_CASE("lesson 14 --model: plans for thousands of ranks, and starts none") {
  const Outcome outcome = run_lesson(LESSON, {"--model", "kimi-k2", "--dp", "512", "--tp", "8"});
  CAPTURE(outcome.out);
  CHECK(outcome.exit_code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("kimi-k2, planned for dp 512 × tp 8") == 0);
  CHECK(outcome.out.find("check") == std::string::npos);
  for (const std::string& line : lines_of(outcome.out)) CHECK(text_width(line) <= kColumns);
}

TEST_CASE("lesson 14 --model: a name or a grid that can't be is refused, and so are as many ranks without a model") {
  expect_refused({LESSON}, {{{"--model", "gpt5"}, "--model gpt5 is not known; it is gpt2, "},
                            {{"--model", "gpt2", "--tp", "8"}, "--tp 8 does not divide the 50257 rows"},
                            {{"--dp", "512", "--tp", "8"}, "--dp 512"},
                            {{"--bucket-capacity", "-1"}, "a bucket capacity of -1 elements"}});
}
