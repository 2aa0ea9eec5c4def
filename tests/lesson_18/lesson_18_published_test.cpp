// Lesson 18 with --published on the real traces, where they are there.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "sim/lesson_18/published_claims.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/run_program.hpp"

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

Outcome read(const std::string& folder) { return run_program({LESSON_18, "--published", folder}, 120); }

}  // namespace

TEST_CASE("--published: the figures as they were counted, beside them the corrected ones, and the verdicts") {
  if (skipped()) return;
  const Outcome outcome = read(traces());
  CHECK(outcome.exit_code == 0);
  CAPTURE(outcome.out);
  for (const std::string words : {"139.53 ms    139.53 ms  ✔   68.73 ms", "110          110  ✔         25",
                                  "16 of 16 published figures", "0.594, kernels of rank 0", "10 and 25",
                                  "61.0 %, on the device", "0.90 and 0.99, of the span", "13.75 and 23.16 ms"}) {
    CAPTURE(words);
    CHECK(outcome.out.find(words) != std::string::npos);
  }
  CHECK(outcome.out.find("give --published") == std::string::npos);
}

TEST_CASE("--published: of files that hold other figures nothing is claimed, and the lesson fails") {
  if (skipped()) return;
  const TemporaryFolder folder;
  for (const std::string& name : kPublishedFiles)  // AdamW's for all
    std::filesystem::copy_file(traces() + "/" + kPublishedFiles[1], folder.file(name));
  const Outcome outcome = read(folder.path());
  CHECK(outcome.exit_code == 1);
  CHECK(outcome.out.find("figures: read ") != std::string::npos);
}
