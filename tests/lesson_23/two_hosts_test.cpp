// Lesson 23 as a program: with two networks and without, and with a host that is gone.

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "sim/world/private_network.hpp"
#include "tests/sim/run_program.hpp"

using muonwalk::sim::PrivateNetwork;
using muonwalk::testing::end_text;
using muonwalk::testing::Outcome;
using muonwalk::testing::processes_of_session;
using muonwalk::testing::Program;
using muonwalk::testing::run_program;

namespace {

constexpr double kLimitSeconds = 120;

std::string lesson() {
  char self[4096] = {};
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  const std::string path(self, length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1) + "lesson_23_two_hosts";
}

bool has(const Outcome& outcome, const std::string& words) { return outcome.err.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("two addresses of a loopback stand in for two networks: the same screen, and a line that says so") {
  const Outcome usual = run_program({lesson()}, kLimitSeconds);
  const Outcome shared = run_program({lesson(), "--network", "shared"}, kLimitSeconds);
  CHECK_MESSAGE(usual.exit_code == 0, end_text(usual));
  CHECK_MESSAGE(shared.exit_code == 0, end_text(shared));
  CHECK(usual.out == shared.out);
  CHECK(has(shared, "the two hosts of this run are two addresses of one loopback"));
  CHECK(!has(shared, "counted by the kernel"));
  const bool two_networks = PrivateNetwork(2).exists();
  CHECK(has(usual, "two addresses of one loopback") == !two_networks);
  for (const char* host : {"host A: ", "host B: "}) CHECK(has(usual, host) == two_networks);
}

TEST_CASE("the cable has the bytes of the groups that cross it, whichever these are") {
  if (!PrivateNetwork(2).exists()) {
    MESSAGE("left out: this system lets a process have no two networks with a cable between them");
    return;
  }
  // Five steps: what the table of a step says, five times.
  CHECK(has(run_program({lesson()}, kLimitSeconds), "host A: planned for the other host 360,960 B"));
  const Outcome across = run_program({lesson(), "--placement", "tp-across"}, kLimitSeconds);
  CHECK_MESSAGE(across.exit_code == 0, across.out);
  CHECK(has(across, "host A: planned for the other host 191,840 B"));
  CHECK(across.out.find(" 38,368 B ") != std::string::npos);
}

TEST_CASE("a host that vanishes ends the run with a sentence, and nothing is left") {
  Program program({lesson(), "--vanish", "--timeout", "1"});
  const Outcome outcome = program.wait(kLimitSeconds);
  CHECK_MESSAGE(outcome.exit_code == 3, end_text(outcome));
  CHECK(has(outcome, "in step 'host B vanishes'"));
  CHECK((has(outcome, "rank 2") || has(outcome, "ranks 2–3") || has(outcome, "rank 3")));
  CHECK(processes_of_session(program.pid()).empty());
}

TEST_CASE("what can't be shared by two hosts is refused") {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--dp", "3", "--tp", "1"},
                                             {"--dp", "2", "--tp", "1", "--placement", "tp-across"},
                                             {"--placement", "x"},
                                             {"--pp", "2"},
                                             {"--link", "fast"}}) {
    std::vector<std::string> command = {lesson()};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome outcome = run_program(command, kLimitSeconds);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
  }
}
