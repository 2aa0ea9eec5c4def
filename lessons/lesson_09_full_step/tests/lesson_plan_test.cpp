// Lesson 09's --plan, through the program: what ranks would do, without starting one.
#include <doctest/doctest.h>

#include <chrono>
#include <set>

#include "src/optim/full_step.hpp"
#include "src/text/text.hpp"
#include "src/train/models.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_lesson;

namespace {

Outcome planned(std::vector<std::string> options) {
  options.push_back("--plan");
  return run_lesson(LESSON_09, options);
}

// The plan of the proof of concept's matrices as the library prints it.
std::string printed(const Grid& grid, Ownership ownership) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  options.ownership = ownership;
  const std::vector<Layout> stages = {plan_layout(proof_of_concept_parameters(), grid, options)};
  return plan_text(plan_kinds(stages, [](const Layout& l, const Place& p) { return muon_plan(l, p, {}); }), stages);
}

}  // namespace

TEST_CASE("--plan: prints what the library plans, a line per operation, and nothing else") {
  for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
    const Outcome outcome = planned({"--ownership", ownership_name(ownership)});
    INFO(outcome.out, outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out == printed(Grid().dp(4).tp(2), ownership) + "\n");
    for (const std::string& line : lines_of(outcome.out)) CHECK(text_width(line) <= 100);
  }
  // Three kinds of ranks, and the figures that lesson 09 counts when it runs.
  const Outcome outcome = planned({});
  for (const char* words : {"ranks 0–1: ", "ranks 2–5: ", "ranks 6–7: ", "at most 3,944,694"})
    CHECK(outcome.out.find(words) != std::string::npos);
}

TEST_CASE("--plan: starts no rank, so there may be more than a machine bears, with a model that it could not hold") {
  for (const auto& options : std::vector<std::vector<std::string>>{
           {"--model", "llama-3-70b", "--dp", "512", "--tp", "8"},
           {"--model", "llama-3-70b", "--dp", "64", "--tp", "8", "--pp", "8", "--bucket-capacity", "40000000"},
           {"--model", "llama-3-70b", "--dp", "512", "--tp", "8", "--ownership", "matrices", "--precision", "bf16"},
           {"--dp", "4096", "--tp", "1"}}) {
    const Outcome outcome = planned(options);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    CHECK(outcome.err.empty());
    int heads = 0, operations = 0;
    for (const std::string& line : lines_of(outcome.out)) {
      CHECK(text_width(line) <= 100);
      heads += line.rfind("rank", 0) == 0;
      operations += line.find("Newton–Schulz") != std::string::npos;
    }
    CHECK(heads > 0);
    CHECK(operations > 0);
    // Every rank is of one kind: each of the 4096 stands in one heading.
    CHECK(outcome.out.find("ranks 0") == 0);
  }
}

TEST_CASE("--verbose 2: the plan stands before the run that follows it") {
  const Outcome outcome =
      run_lesson(LESSON_09, {"--small", "--steps", "1", "--dp", "2", "--tp", "1", "--verbose", "2"});
  INFO(outcome.out, outcome.err);
  REQUIRE(outcome.exit_code == 0);
  const std::size_t plan = outcome.out.find("reduce_scatter dp, float32");
  CHECK(plan != std::string::npos);
  CHECK(plan < outcome.out.find("check   weights after step 1"));
  CHECK(run_lesson(LESSON_09, {"--small", "--steps", "1", "--dp", "2", "--tp", "1"})
            .out.find("reduce_scatter dp, float32") == std::string::npos);
}

TEST_CASE("--ownership: every policy passes its checks, over processes and threads, with padding, stages and bf16") {
  for (const char* ownership : {"buckets", "buffer", "matrices"})
    for (const auto& more : std::vector<std::vector<std::string>>{
             {},
             {"--dp", "3", "--tp", "1", "--bucket-capacity", "2000", "--alignment", "64"},
             {"--pp", "2", "--dp", "2", "--tp", "2", "--precision", "bf16"},
             {"--world", "fibers", "--dp", "8", "--tp", "1"}}) {
      std::vector<std::string> options = {"--small", "--steps", "2", "--ownership", ownership};
      options.insert(options.end(), more.begin(), more.end());
      const Outcome outcome = run_lesson(LESSON_09, options);
      INFO(outcome.out, outcome.err);
      CHECK(outcome.exit_code == 0);
    }
}

TEST_CASE("--ownership: the planted bugs are caught under each policy") {
  for (const char* ownership : {"buffer", "matrices"})
    for (const char* bug : {"dropped_gradient", "forgotten_momentum", "slice_shape", "stale_weights"}) {
      CAPTURE(ownership);
      CAPTURE(bug);
      CHECK(run_lesson(LESSON_09, {"--small", "--steps", "2", "--ownership", ownership, "--bug", bug}).exit_code == 1);
    }
}

TEST_CASE("--plan, --model and --ownership: what can't work is one sentence, and exit 2") {
  expect_refused(
      {LESSON_09},
      {{{"--model", "llama-3-70b"}, "--model llama-3-70b is too large to run here; add --plan"},
       {{"--plan", "--model", "gpt-2"}, "--model gpt-2 is not known; it is gpt2, llama-7b"},
       {{"--plan", "--model", "llama-3-70b", "--small"}, "leave out --small"},
       {{"--plan", "--model", "llama-3-70b", "--tp", "3", "--dp", "1"}, "--tp 3 does not divide the 8192 rows"},
       {{"--plan", "--model", "llama-3-70b", "--pp", "600", "--dp", "1", "--tp", "1"}, "--pp 600"},
       {{"--plan", "--dp", "1000000", "--tp", "1"}, "--dp 1000000"},
       {{"--plan", "--dp", "60000", "--tp", "2"}, "asks for 120000 ranks, but plans are made for at most 65536"},
       {{"--dp", "512", "--tp", "8"}, "--dp 512"},
       {{"--ownership", "rows"}, "--ownership rows is not known; it takes buckets"},
       {{"--plan", "--lr", "-1"}, "--lr -1"}});
}
