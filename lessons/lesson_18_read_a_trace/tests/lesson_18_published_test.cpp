// Lesson 18 with --published on the real traces, where they are there.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "lessons/lesson_18_read_a_trace/published_claims.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"

using muonwalk::sim::kPublishedFiles;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;

namespace {

std::string traces() {
  const char* given = std::getenv("MUONWALK_TRACES");
  return given != nullptr ? given : MUONWALK_TRACES;
}

// CTest shows the test as skipped when it finds this sentence.
bool skipped() {
  if (std::filesystem::exists(traces() + "/" + kPublishedFiles[0])) return false;
  std::printf("SKIPPED: the published traces are not in %s; MUONWALK_TRACES names their folder.\n", traces().c_str());
  return true;
}

Outcome read(const std::string& folder) { return run_program({LESSON, "--published", folder}, 120); }

}  // namespace

TEST_CASE("--published: the figures as they were counted, beside them the corrected ones, and the verdicts") {
  if (skipped()) return;
  const Outcome outcome = read(traces());
  CHECK(outcome.exit_code == 0);
  CAPTURE(outcome.out);
  for (const std::string words :
       {"139.53 ms    139.53 ms  ✔   68.73 ms", "110          110  ✔         25", "16 of 16 published figures", "0.594",
        "10 and 25", "61.0 %", "0.90 and 0.99", "13.75 and 23.16 ms", "the same four"}) {
    CAPTURE(words);
    CHECK(outcome.out.find(words) != std::string::npos);
  }
}

TEST_CASE("what the lesson says without the traces is what they say, figure by figure") {
  if (skipped()) return;
  const muonwalk::sim::ReadAgain by_us = muonwalk::sim::read_by_us(), now = muonwalk::sim::read_in(traces());
  CHECK(by_us.digest == now.digest);
  int figures = 0;
  for (const auto& claim : by_us.claims)
    for (const auto& figure : claim.figures) {
      CAPTURE(figures);
      int found = 0;
      for (const auto& again : now.claims)
        for (const auto& other : again.figures) {
          if (other.id != figure.id) continue;
          ++found;
          CHECK(other.unit == figure.unit);
          CHECK(other.corrected_decimals == figure.corrected_decimals);
          CHECK(fmt::format("{:.{}f}", other.corrected, other.corrected_decimals) ==
                fmt::format("{:.{}f}", figure.corrected, figure.corrected_decimals));
        }
      CHECK(found == 1);
      ++figures;
    }
  CHECK(figures == 10);
}

TEST_CASE("--published: of files that hold other figures nothing is claimed, and the lesson fails") {
  if (skipped()) return;
  const TemporaryFolder folder;
  for (const std::string& name : kPublishedFiles)  // AdamW's for all
    std::filesystem::copy_file(traces() + "/" + kPublishedFiles[1], folder.file(name));
  const Outcome outcome = read(folder.path());
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("figures: read ") != std::string::npos);
  CHECK(outcome.out.find("other traces than those") != std::string::npos);
}
