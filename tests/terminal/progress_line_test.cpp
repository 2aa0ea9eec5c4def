// How far a long run is, on a terminal and nowhere else.
#include "sim/terminal/progress_line.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <string>

#include "sim/terminal/end_on_signals.hpp"
#include "sim/terminal/terminal.hpp"
#include "tests/pseudo_terminal.hpp"
#include "tests/terminal/in_child.hpp"

using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

constexpr char kClear[] = "\r\x1b[K";
constexpr char kFirst[] = "\rMuon: step 1 of 3\x1b[K";

}  // namespace

TEST_CASE("progress_text: the step, the rate of those that were timed, and what is left at that rate") {
  CHECK(progress_text("AdamW", 30, 120, 30, 2.0) == "AdamW: step 30 of 120 · 15.0 steps/s · 6 s left");
  CHECK(progress_text("AdamW", 70, 120, 10, 2.0) == "AdamW: step 70 of 120 · 5.0 steps/s · 10 s left");
  CHECK(progress_text("AdamW", 1, 120, 0, 0) == "AdamW: step 1 of 120");
}

TEST_SUITE_BEGIN("on a terminal");

TEST_CASE("progress line: on a terminal, in one place, and gone at the end; nothing where there is no terminal") {
  const PseudoTerminal terminal;
  if (!terminal.open()) return;
  {
    ProgressLine line("Muon", 3, terminal.file());
    for (int done = 1; done <= 3; ++done) line.at(done);
    const std::string to_the_end = terminal.written();
    CHECK(to_the_end.find(kFirst) == 0);
    CHECK(to_the_end.substr(to_the_end.size() - 4) == kClear);
    CHECK(to_the_end.find('\n') == std::string::npos);
  }
  CHECK(terminal.written().empty());
  ProgressLine("Muon", 3, terminal.file()).at(1);
  CHECK(terminal.written() == std::string(kFirst) + kClear);

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  ProgressLine("Muon", 3, ends[1]).at(1);
  CHECK(PseudoTerminal::read_to_mark(ends[1], ends[0]).empty());
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("progress line: makes room for a sentence once, and is not there where nobody wants it") {
  const PseudoTerminal terminal;
  if (!terminal.open()) return;
  clear_progress_line();
  CHECK(terminal.written().empty());
  {
    ProgressLine line("Muon", 3, terminal.file());
    line.at(1);
    for (int i = 0; i < 2; ++i) clear_progress_line();
    CHECK(terminal.written() == std::string(kFirst) + kClear);
  }
  CHECK(terminal.written() == kClear);  // for one that a signal may have let through
  clear_progress_line();
  show_progress(false);
  ProgressLine("Muon", 3, terminal.file()).at(1);
  show_progress(true);
  CHECK(terminal.written().empty());
}

TEST_CASE("progress line: whatever is printed on its terminal has a line of its own, a request and an end as well") {
  const auto expect = [](const std::function<void()>& say, int exit_code) {
    const PseudoTerminal terminal;
    if (!terminal.open()) return;
    const Ended ended = in_child([&] {
      for (const int file : {STDOUT_FILENO, STDERR_FILENO}) ::dup2(terminal.file(), file);
      end_on_signals("the sentence");
      static std::atomic<int> asked{0};
      take_requests(asked, "the sentence");
      ProgressLine line("Muon", 3);
      line.at(1);
      say();
      return 0;
    });
    CHECK(ended.exit_code == exit_code);
    const std::string written = terminal.written();
    INFO(written);
    CHECK(written.find(std::string(kFirst) + kClear + "the sentence\r\n") == 0);
  };
  expect([] { print_error_line("the sentence"); }, 0);
  expect(
      [] {
        print_line("the sentence");
        finish_output();
      },
      0);
  expect([] { ::raise(SIGINT); }, 0);  // a request
  expect([] { ::raise(SIGHUP); }, 3);  // the end
  expect([] { end_with("the sentence\n"); }, 3);
}

TEST_SUITE_END();
