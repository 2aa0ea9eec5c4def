// Lesson 17's own options, through the program: a slow link on every transport, one way alone, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <sstream>
#include <utility>
#include <vector>

#include "tests/ranks/expect_refused.hpp"

using muonwalk::testing::expect_refused;
using muonwalk::testing::lines_of;
using muonwalk::testing::Outcome;
using muonwalk::testing::run_lesson;

namespace {

// The output without its first line, which names the transport, and the kernel's counts, which need sockets of their
// own.
std::string without_transport(const std::string& out) {
  std::string text;
  for (const std::string& line : lines_of(out))
    if (line.find("Lesson 17") == std::string::npos && line.find("        TCP") == std::string::npos)
      text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("--link: the same bits, bytes and tables on processes over Gloo and fibers through memory") {
  const Outcome processes = run_lesson(LESSON, {"--link", "0.5,300"});
  CHECK(processes.exit_code == 0);
  CHECK(processes.out.find("0.5 GB/s, 300 µs") != std::string::npos);
  const Outcome fibers = run_lesson(LESSON, {"--link", "0.5,300", "--world", "fibers"});
  CHECK(fibers.exit_code == 0);
  CHECK(without_transport(fibers.out) == without_transport(processes.out));
  const Outcome plain = run_lesson(LESSON, {});
  CHECK(plain.exit_code == 0);
  CHECK(plain.err.find("measured here") != std::string::npos);
}

TEST_CASE("--link: it takes its time between processes: four buckets in sequence have four latencies") {
  const std::string err = run_lesson(LESSON, {"--way", "in sequence", "--link", "1,20000"}).err;
  const std::string title = "  optimizer step, in sequence";
  const std::size_t row = err.find(title);
  REQUIRE(row != std::string::npos);
  CHECK(std::strtod(err.c_str() + row + title.size(), nullptr) >= 80);  // milliseconds
}

namespace {

// The figures behind `title` in the line of times that begins with it: "61.10 ms  20.98" is 61.10 and 20.98.
std::vector<double> figures_after(const std::string& text, const std::string& title) {
  std::vector<double> figures;
  for (const std::string& line : lines_of(text)) {
    if (line.rfind(title, 0) != 0 || line.find("MFLOP") != std::string::npos) continue;
    std::istringstream words(line.substr(title.size()));
    for (std::string word; words >> word;)
      if (word.find_first_not_of("0123456789.") == std::string::npos) figures.push_back(std::stod(word));
  }
  return figures;
}

}  // namespace

TEST_CASE(
    "--link with fibers: time is virtual, and what is measured is what the plan says, as far as both are printed") {
  for (const char* link : {"0.02,200", "1,8000", "100,1", "0.002,0"})
    for (const char* dp : {"2", "4"}) {
      CAPTURE(link);
      CAPTURE(dp);
      const Outcome outcome = run_lesson(LESSON, {"--world", "fibers", "--link", link, "--dp", dp});
      CHECK(outcome.exit_code == 0);
      for (const auto& [played, measured] : {std::pair("in sequence", "  optimizer step, in sequence"),
                                             {"all at once", "  optimizer step, all at once"},
                                             {"pipelined", "  optimizer step, pipelined"},
                                             {"tiny buckets", "  optimizer step, in tiny buckets"}}) {
        const std::vector<double> planned = figures_after(outcome.out, played),
                                  found = figures_after(outcome.err, measured);
        REQUIRE(planned.size() == 5);
        REQUIRE(found.size() == 5);
        for (std::size_t i = 0; i < 5; ++i)
          CHECK(std::abs(found[i] - planned[i]) < 0.00501);  // both print two decimals
      }
    }
}

TEST_CASE("--link: every planted bug is caught over a slow link, too") {
  for (const char* bug : {"reused_buffer", "no_wait", "wrong_bucket"}) {
    CAPTURE(bug);
    CHECK(run_lesson(LESSON, {"--link", "0.5,100", "--bug", bug}).exit_code == 1);
    CHECK(run_lesson(LESSON, {"--world", "fibers", "--bug", bug}).exit_code == 1);
    CHECK(run_lesson(LESSON, {"--precision", "bf16", "--bug", bug}).exit_code == 1);
  }
}

TEST_CASE("--way: one of them alone, with its own costs") {
  for (const char* way : {"in sequence", "all at once", "pipelined", "tiny buckets"}) {
    CAPTURE(way);
    const Outcome outcome = run_lesson(LESSON, {"--way", way, "--dp", "2", "--tp", "2"});
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.out.find("step 2 · optimizer step, ") != std::string::npos);
    CHECK(outcome.out.find("step 3") == std::string::npos);
  }
}

TEST_CASE("what can't be is refused in one sentence, before any rank is started") {
  expect_refused({LESSON},
                 {{{"--link", "fast"}, "fast is not a link"},
                  {{"--link", "nan,1"}, "nan,1 is not a link"},
                  {{"--link", "0,1"}, "bandwidth of 0"},
                  {{"--link=-1,1"}, "bandwidth of -1"},
                  {{"--link", "1,-1"}, "latency of -1"},
                  {{"--link", ""}, "--link"},
                  {{"--way", "backwards"},
                   "--way backwards is not known; it takes one of: in sequence, all at once, pipelined, tiny buckets"},
                  {{"--way", "a b"}, "--way \"a b\" is not known"},
                  {{"--pp", "2"}, "--pp 2 has no place here, where one step is looked at by itself; try --pp 1"},
                  {{"--tp", "3"}, "--tp 3 does not divide"}});
}
