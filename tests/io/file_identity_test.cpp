#include "src/io/file_identity.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/text/names.hpp"
#include "tests/io/in_child.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;

namespace {

constexpr PathUse kWrites = PathUse::writes, kReads = PathUse::reads, kInto = PathUse::writes_into;

// What is said of two paths; empty where they may be given together.
std::string refusal(const std::string& a, PathUse use_a, const std::string& b, PathUse use_b) {
  return usage_error([&] { require_distinct_files({{"--a", a, use_a}, {"--b", b, use_b}}); });
}

bool is_written(PathUse use) { return use == kWrites || use == kInto; }

std::string replaced(const std::string& written, const std::string& read) {
  return written + " would replace the file that " + read + " reads; name another file to be written";
}

std::string written_twice(const std::string& one, const std::string& other) {
  return one + " and " + other + " are the same file, and both are to be written; give each a file of its own";
}

void expect_sentence(const std::string& a, PathUse use_a, const std::string& b, PathUse use_b) {
  const std::string sentence = refusal(a, use_a, b, use_b), of_a = "--a " + as_typed(a), of_b = "--b " + as_typed(b);
  CAPTURE(sentence);
  if (is_written(use_a) && is_written(use_b))
    CHECK((sentence == written_twice(of_a, of_b) || sentence == written_twice(of_b, of_a)));
  else
    CHECK(sentence == (is_written(use_a) ? replaced(of_a, of_b) : replaced(of_b, of_a)));
}

void expect_refused(const std::string& a, PathUse use_a, const std::string& b, PathUse use_b) {
  expect_sentence(a, use_a, b, use_b);
  expect_sentence(b, use_b, a, use_a);
}

void expect_allowed(const std::string& a, PathUse use_a, const std::string& b, PathUse use_b) {
  CAPTURE(a);
  CAPTURE(b);
  for (const std::string& sentence : {refusal(a, use_a, b, use_b), refusal(b, use_b, a, use_a)})
    CHECK(sentence.find("--") == std::string::npos);
}

}  // namespace

TEST_CASE("identity: one file in two spellings, there or not yet, is refused where it is written") {
  const TemporaryFolder folder;
  write_text(folder.file("there"), "x");
  for (const char* name : {"there", "new", "none/new"}) {
    for (const PathUse other : {kWrites, kReads}) {
      expect_refused(folder.file(name), kWrites, folder.file(name), other);
      expect_refused(folder.file(name), kWrites, folder.path() + "/./" + name, other);
      expect_refused(folder.file(name), kWrites, folder.path() + "//" + name, other);
    }
    expect_allowed(folder.file(name), kReads, folder.file(name), kReads);
    expect_allowed(folder.file(name), kWrites, folder.file(std::string(name) + "2"), kWrites);
  }
  expect_allowed(folder.file("there"), kWrites, "", kWrites);
  expect_allowed(folder.file("there"), kWrites, folder.file("there"), PathUse::none);
}

TEST_CASE("identity: links of every kind, to files and to folders, and those that lead to nothing yet") {
  const TemporaryFolder folder;
  write_text(folder.file("there"), "x");
  REQUIRE(link(folder.file("there").c_str(), folder.file("hard").c_str()) == 0);
  REQUIRE(symlink("there", folder.file("soft").c_str()) == 0);
  REQUIRE(symlink("new", folder.file("to nothing yet").c_str()) == 0);
  REQUIRE(mkdir(folder.file("folder").c_str(), 0777) == 0);
  REQUIRE(symlink("folder", folder.file("to folder").c_str()) == 0);
  for (const PathUse other : {kWrites, kReads}) {
    expect_refused(folder.file("there"), kWrites, folder.file("hard"), other);
    expect_refused(folder.file("there"), kWrites, folder.file("soft"), other);
    expect_refused(folder.file("hard"), kWrites, folder.file("soft"), other);
    expect_refused(folder.file("new"), kWrites, folder.file("to nothing yet"), other);
    expect_refused(folder.file("folder/x"), kWrites, folder.file("to folder/x"), other);
    expect_refused(folder.file("folder/../there"), kWrites, folder.file("there"), other);
  }
  expect_allowed(folder.file("folder/there"), kWrites, folder.file("there"), kWrites);
}

TEST_CASE("identity: files of a folder that is written, by their names and by what they are") {
  const TemporaryFolder folder;
  for (const std::string& in : {folder.file("new"), folder.file("there")}) {
    if (in == folder.file("there")) REQUIRE(mkdir(in.c_str(), 0777) == 0);
    for (const PathUse other : {kWrites, kReads}) {
      expect_refused(in, kInto, in + "/rank_0.json", other);
      expect_refused(in + "/", kInto, in + "/./rank_17.json", other);
      expect_allowed(in, kInto, in + "/deeper/rank_0.json", other);
    }
    expect_refused(in, kInto, in, kWrites);
    expect_allowed(in, kInto, in, kInto);
  }
  expect_refused(folder.file("none"), kWrites, folder.file("none/folder"), kInto);  // a file can't be a folder
  write_text(folder.file("precious"), "x");
  REQUIRE(symlink("../precious", folder.file("there/rank_3.json").c_str()) == 0);
  const std::string to_precious = folder.file("there/rank_3.json"), precious = folder.file("precious");
  CHECK(refusal(folder.file("there"), kInto, precious, kReads) == replaced("--a " + to_precious, "--b " + precious));
  CHECK(refusal(precious, kReads, folder.file("there"), kInto) == replaced("--b " + to_precious, "--a " + precious));
  CHECK(refusal(folder.file("there"), kInto, precious, kWrites) ==
        written_twice("--a " + to_precious, "--b " + precious));
}

TEST_CASE("identity: the file that standard output or error goes to is not another output") {
  const TemporaryFolder folder;
  for (const int descriptor : {1, 2}) {
    CAPTURE(descriptor);
    CHECK(in_child([&] {
            const int file = open(folder.file("out").c_str(), O_WRONLY | O_CREAT, 0666);
            dup2(file, descriptor);
            const std::string said = refusal(folder.file("out"), kWrites, "", kWrites);
            const std::string of_reading = refusal(folder.file("out"), kReads, "", kWrites);
            const std::string expected = "--a " + as_typed(folder.file("out")) + " is the file that the standard " +
                                         (descriptor == 1 ? "output" : "error") +
                                         " goes to; give each a file of its own";
            return said == expected && of_reading == "(no UsageError)" ? 42 : 1;
          }) == 42);
  }
}

TEST_CASE("identity: of many paths, any two are compared, and each sentence names the two that it is about") {
  const TemporaryFolder folder;
  for (std::size_t first = 0; first < 4; ++first)
    for (std::size_t second = first + 1; second < 4; ++second) {
      std::vector<NamedPath> paths;
      for (std::size_t i = 0; i < 4; ++i)
        paths.push_back({"--" + std::to_string(i), folder.file(std::to_string(i == second ? first : i)),
                         i == second ? kReads : kWrites});
      const auto word = [&](std::size_t i) { return paths[i].option + " " + as_typed(paths[i].path); };
      CHECK(usage_error([&] { require_distinct_files(paths); }) == replaced(word(first), word(second)));
    }
}

TEST_CASE("identity: what standard output goes to, below a folder or as no file at all") {
  const TemporaryFolder folder;
  REQUIRE(mkdir(folder.file("ranks").c_str(), 0777) == 0);
  CHECK(in_child([&] {
          dup2(open(folder.file("ranks/rank_0.json").c_str(), O_WRONLY | O_CREAT, 0666), 1);
          const std::string name = folder.file("ranks/rank_0.json");
          return refusal(folder.file("ranks"), kInto, "", kWrites) ==
                             "--a " + as_typed(name) +
                                 " is the file that the standard output goes to; give each a file of its own" &&
                         refusal(folder.file("ranks/rank_0.json/x"), kWrites, "", kWrites) == "(no UsageError)" &&
                         refusal(folder.file("ranks/rank_1.json"), kWrites, "", kWrites) == "(no UsageError)"
                     ? 42
                     : 1;
        }) == 42);
  CHECK(in_child([&] {
          dup2(open("/dev/null", O_WRONLY), 1);
          dup2(1, 2);
          return refusal("/dev/null", kWrites, "", kWrites) == "(no UsageError)" ? 42 : 1;
        }) == 42);
}
