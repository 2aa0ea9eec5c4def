// What comes from outside of a run: signals to a rank, to the parent, to all of them.

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/fault_cases.hpp"

using namespace muonwalk::testing;

namespace {

std::vector<std::string> looping(const std::string& seconds) {
  return {fault_program(), "--mode", "loop", "--seconds", seconds, "--timeout", "2"};
}

// Eight ranks that talk for a minute, unless something ends them. In the second of their steps when it returns.
struct LoopingRun {
  Program program{looping("60")};
  std::vector<pid_t> ranks;
  LoopingRun() {
    REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
    ranks = children_of(program.pid());
    REQUIRE(ranks.size() == 8);
    usleep(20000);  // on into the second step, most likely
  }
};

}  // namespace

TEST_CASE("a rank is killed or stopped from outside: the run names it and its step") {
  for (const auto& [number, what] : {std::pair(SIGKILL, "was killed by signal 9 (SIGKILL)"),
                                     std::pair(SIGSTOP, "was stopped by signal 19 (SIGSTOP)")}) {
    LoopingRun run;
    kill(run.ranks[3], number);
    const Outcome outcome = run.program.wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 3);
    expect_sentence(outcome, {"rank ", std::string(what) + " in step '"});
    CHECK(processes_of_session(run.program.pid()).empty());
  }
}

TEST_CASE("the parent is killed: its ranks vanish") {
  LoopingRun run;
  kill(run.program.pid(), SIGKILL);
  CHECK(wait_until_gone(run.program.pid(), kFaultLimitSeconds));
}

TEST_CASE("interrupts to the parent, and to the whole group as Ctrl-C does: exit 3, one sentence, nothing left") {
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT})
    for (bool to_group : {false, true}) {
      CAPTURE(number);
      CAPTURE(to_group);
      LoopingRun run;
      kill(to_group ? -run.program.pid() : run.program.pid(), number);
      const Outcome outcome = run.program.wait(kFaultLimitSeconds);
      CHECK(outcome.exit_code == 3);
      expect_sentence(outcome, {"interrupted"});
      CHECK(processes_of_session(run.program.pid()).empty());
    }
}

TEST_CASE("interrupts at any moment, from before the ranks exist to after they have gone: nothing left") {
  std::random_device device;
  const unsigned seed = device();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 20; ++i) {
    const unsigned delay = random() % 120000;
    CAPTURE(delay);
    Program program({fault_program(), "--timeout", "2"});
    usleep(delay);
    kill(-program.pid(), SIGINT);
    const Outcome outcome = program.wait(kFaultLimitSeconds);
    CAPTURE(outcome.err);
    // Very early the program is not there yet to listen, and late it has ended well.
    CHECK_FALSE(outcome.timed_out);
    const bool well = outcome.exit_code == 3 || outcome.exit_code == 0 || outcome.signal == SIGINT;
    CHECK_MESSAGE(well, end_text(outcome));
    CHECK(wait_until_gone(program.pid(), 2));
  }
}

TEST_CASE("what nohup, or a script that starts it with &, has told it to ignore, does not end the run") {
  constexpr int kIgnored[] = {SIGHUP, SIGINT, SIGQUIT};
  Program program(looping("1"), [&] {
    for (int number : kIgnored) signal(number, SIG_IGN);
  });
  REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
  for (int number : kIgnored) kill(-program.pid(), number);
  const Outcome outcome = program.wait(kFaultLimitSeconds);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("inherited from whoever started it: children are not forgotten, nothing is blocked, SIGTERM ends the run") {
  SUBCASE("SIGCHLD ignored: how a rank died is known all the same") {
    Program program({fault_program(), "--fault", "kill:1:2", "--timeout", "10"}, [] { signal(SIGCHLD, SIG_IGN); });
    const Outcome outcome = program.wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 3);
    expect_sentence(outcome, {"rank 1 was killed by signal 9 (SIGKILL) in step '"});
  }
  SUBCASE("SIGTERM ignored, and every signal blocked") {
    Program program(looping("60"), [] {
      signal(SIGTERM, SIG_IGN);
      sigset_t all;
      sigfillset(&all);
      sigprocmask(SIG_SETMASK, &all, nullptr);
    });
    REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
    kill(program.pid(), SIGTERM);
    const Outcome outcome = program.wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 3);
    expect_sentence(outcome, {"interrupted"});
  }
}

TEST_CASE("Ctrl-Z for longer than the timeout, then going on: nothing happened") {
  Program program(looping("3"));
  REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
  kill(-program.pid(), SIGSTOP);
  usleep(4000000);
  kill(-program.pid(), SIGCONT);
  const Outcome outcome = program.wait(kFaultLimitSeconds);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
}

TEST_CASE("while the ranks connect, they listen on the loopback address and nowhere else; afterwards nobody does") {
  // On the network that is still there afterwards.
  Program program({fault_program(), "--fault", "never-connect:7", "--timeout", "3", "--network", "shared"});
  REQUIRE(program.wait_for_output("Question", kFaultLimitSeconds));  // just before the ranks are started
  Belongings held;
  while (held.listening < 7 && !processes_of_session(program.pid()).empty())
    held = belongings_of_session(program.pid());
  CHECK(held.listening >= 7);  // or else this test looked at nothing
  CHECK_MESSAGE(held.not_loopback.empty(), held.not_loopback[0]);
  CHECK(program.wait(kFaultLimitSeconds).exit_code == 3);
  const std::vector<std::string> left = left_open(held.sockets, 5);
  CHECK_MESSAGE(left.empty(), left[0]);
}

TEST_CASE("while it runs, it talks over the loopback address only; afterwards no socket and no file is left") {
  const TemporaryFolder folder;
  for (int number : {0, SIGINT, SIGKILL, SIGTERM}) {  // 0: it ends by itself
    CAPTURE(number);
    const bool shared = number != SIGTERM;  // a network of their own would be gone afterwards, with all that is in it
    std::vector<std::string> command = looping(number == 0 ? "1" : "60");
    command.insert(command.end(), {"--network", shared ? "shared" : "private"});
    Program program(command, [&] { setenv("TMPDIR", folder.path().c_str(), 1); });
    REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
    const Belongings held = belongings_of_session(program.pid());
    CHECK(held.sockets.size() >= 8);
    CHECK_MESSAGE(held.not_loopback.empty(), held.not_loopback[0]);
    CHECK_MESSAGE(held.files.empty(), held.files[0]);
    CHECK(held.connected >= 8);
    if (shared) CHECK_FALSE(still_open(held.sockets).empty());
    if (number != 0) kill(program.pid(), number);
    program.wait(kFaultLimitSeconds);
    CHECK(wait_until_gone(program.pid(), kFaultLimitSeconds));
    const std::vector<std::string> left = left_open(held.sockets, 5);
    CHECK_MESSAGE(left.empty(), left[0]);
    CHECK(folder.names().empty());
  }
}
