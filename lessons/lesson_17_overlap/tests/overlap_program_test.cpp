// Lesson 17's own options, through the program: a slow link on every transport, one way alone, and what is refused.
#include <doctest/doctest.h>

#include <cstdlib>

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
    if (line.find("Lesson 17") == std::string::npos && line.find("kernel, with") == std::string::npos)
      text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("--link: the same bits, bytes and tables on processes over Gloo and threads through memory") {
  const Outcome processes = run_lesson(LESSON, {"--link", "0.5,300"});
  CHECK(processes.exit_code == 0);
  CHECK(processes.out.find("0.5 GB/s, 300 µs") != std::string::npos);
  const Outcome threads = run_lesson(LESSON, {"--link", "0.5,300", "--world", "fibers"});
  CHECK(threads.exit_code == 0);
  CHECK(without_transport(threads.out) == without_transport(processes.out));
  const Outcome plain = run_lesson(LESSON, {});
  CHECK(plain.exit_code == 0);
  CHECK(plain.err.find("measured here") != std::string::npos);
}

TEST_CASE("--link: it takes its time on every transport: four buckets in sequence have four latencies") {
  for (const std::vector<std::string>& world : {std::vector<std::string>{}, {"--world", "fibers"}}) {
    std::vector<std::string> options = {"--way", "in sequence", "--link", "1,20000"};
    options.insert(options.end(), world.begin(), world.end());
    const std::string err = run_lesson(LESSON, options).err;
    const std::string title = "  optimizer step, in sequence";
    const std::size_t row = err.find(title);
    REQUIRE(row != std::string::npos);
    CHECK(std::strtod(err.c_str() + row + title.size(), nullptr) >= 80);  // milliseconds
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
