// Lesson 18 with --published: every folder that can't be read. In a program of its own, because a skipped test hides
// what else failed in it.
#include <doctest/doctest.h>

#include "lessons/lesson_18_read_a_trace/published_claims.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/run_program.hpp"

using muonwalk::sim::kPublishedFiles;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_program;

namespace {

void expect_refusal(const std::string& folder, const std::string& words) {
  const Outcome outcome = run_program({LESSON, "--published", folder}, 120);
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
  expect_refusal(folder.path(), "is not JSON");
  for (const std::string& name : kPublishedFiles) write_text(folder.file(name), R"({"traceEvents":[{"ph":"X")");
  expect_refusal(folder.path(), "is cut off");
}
