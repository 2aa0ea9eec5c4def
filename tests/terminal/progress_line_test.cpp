// How far a long run is, on a terminal and nowhere else.
#include "sim/terminal/progress_line.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

using namespace muonwalk::sim;

namespace {

// What is written to a file while `work` has it: all that comes out at the other end before a mark that is written
// last.
template <class Work>
std::string written_to(int file, int reader, const Work& work) {
  work(file);
  REQUIRE(::write(file, "|", 1) == 1);
  std::string all;
  char next = 0;
  while (::read(reader, &next, 1) == 1 && next != '|') all += next;
  return all;
}

}  // namespace

TEST_CASE("progress_text: the step, the rate of those that were timed, and what is left at that rate") {
  CHECK(progress_text("AdamW", 30, 120, 30, 2.0) == "AdamW: step 30 of 120 · 15.0 steps/s · 6 s left");
  CHECK(progress_text("AdamW", 70, 120, 10, 2.0) == "AdamW: step 70 of 120 · 5.0 steps/s · 10 s left");
  CHECK(progress_text("AdamW", 1, 120, 0, 0) == "AdamW: step 1 of 120");
}

TEST_CASE("progress line: on a terminal, in one place, and gone at the end; nothing where there is no terminal") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  const int other_end = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(other_end >= 0);
  const std::string to_the_end = written_to(other_end, terminal, [](int file) {
    ProgressLine line("Muon", 3, file);
    for (int done = 1; done <= 3; ++done) line.at(done);
  });
  CHECK(to_the_end.find("\rMuon: step 1 of 3") == 0);
  CHECK(to_the_end.substr(to_the_end.size() - 4) == "\r\x1b[K");
  CHECK(to_the_end.find('\n') == std::string::npos);
  const std::string broken_off = written_to(other_end, terminal, [](int file) { ProgressLine("Muon", 3, file).at(1); });
  CHECK(broken_off == "\rMuon: step 1 of 3\x1b[K\r\x1b[K");
  ::close(other_end);
  ::close(terminal);

  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(written_to(ends[1], ends[0], [](int file) { ProgressLine("Muon", 3, file).at(1); }).empty());
  ::close(ends[0]);
  ::close(ends[1]);
}
