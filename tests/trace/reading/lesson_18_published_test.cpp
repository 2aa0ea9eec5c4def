// Lesson 18 with --published: the real traces where they are there, and every folder that can't be read.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "sim/trace/published_folder.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/sim/run_program.hpp"

using muonwalk::sim::kPublishedFiles;
using muonwalk::testing::lines_of;
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

void expect_refusal(const std::string& folder, const std::string& words) {
  const Outcome outcome = read(folder);
  CHECK(outcome.exit_code == 2);
  CHECK(outcome.out == "");
  CHECK(lines_of(outcome.err).size() == 1);
  CAPTURE(outcome.err);
  CHECK(outcome.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("--published: a folder that is not there, lacks a file, or holds no traces is refused in one sentence") {
  const TemporaryFolder folder;
  expect_refusal(folder.file("none"), "names no folder");
  expect_refusal(folder.path(), "has no file " + kPublishedFiles[0]);
  for (const std::string& name : kPublishedFiles) write_text(folder.file(name), "no JSON");
  expect_refusal(folder.path(), "is no JSON");
  for (const std::string& name : kPublishedFiles) write_text(folder.file(name), R"({"traceEvents":[{"ph":"X")");
  expect_refusal(folder.path(), "is cut off");
}

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
