// Lesson 18 with --published: every folder that can't be read. In a program of its own, because a skipped test hides
// what else failed in it.
#include <doctest/doctest.h>

#include "lessons/lesson_18_read_a_trace/published_claims.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/expect_refused.hpp"

using muonwalk::sim::kPublishedFiles;

TEST_CASE("--published: a folder that is not there, lacks a file, or holds no traces is refused in one sentence") {
  const TemporaryFolder folder;
  const auto refused = [](const std::string& path, const std::string& words) {
    muonwalk::testing::expect_refused({LESSON}, {{{"--published", path}, words}});
  };
  refused(folder.file("none"), "names no folder");
  refused(folder.path(), "has no file " + kPublishedFiles[0]);
  for (const std::string& name : kPublishedFiles) write_text(folder.file(name), "no JSON");
  refused(folder.path(), "is not JSON");
  for (const std::string& name : kPublishedFiles) write_text(folder.file(name), R"({"traceEvents":[{"ph":"X")");
  refused(folder.path(), "is cut off");
}
