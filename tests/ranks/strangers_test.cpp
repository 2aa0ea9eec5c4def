// Processes that are not ranks and connect to whatever port a rank opens, on a network of this test's own, so that no
// other program of the machine meets them.

#include <doctest/doctest.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "sim/ranks/private_network.hpp"
#include "tests/ranks/fault_cases.hpp"
#include "tests/ranks/left_behind.hpp"

using namespace muonwalk::testing;
using muonwalk::sim::PrivateNetwork;

namespace {

std::string stranger() {
  const std::string beside = fault_program();
  return beside.substr(0, beside.rfind('/') + 1) + "stranger";
}

// Moves this test to a network of its own, once. False where the system does not let it.
bool are_alone() {
  static const bool alone = PrivateNetwork().enter();
  return alone;
}

// A stranger at work from the construction until end().
class Stranger {
 public:
  explicit Stranger(const std::string& way) : program_({stranger(), way}) {
    if (!program_.wait_for_output("ready", kFaultLimitSeconds)) FAIL(end_text(program_.wait(1)));
  }
  void end() {
    kill(program_.pid(), SIGTERM);
    const Outcome outcome = program_.wait(kFaultLimitSeconds);
    REQUIRE(std::sscanf(outcome.out.c_str(), "ready\n%ld connections, %ld bytes", &connections, &received) == 2);
  }
  long connections = 0, received = 0;

 private:
  Program program_;
};

int exit_code_of_child(const std::function<int()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Counts {
  int well = 0, turned_away = 0;
};

// Runs a few ranks that talk, until the stranger has been seen often enough.
void run_once(const std::vector<std::string>& options, Counts& counts) {
  std::vector<std::string> command = {fault_program(), "--timeout", "20"};
  command.insert(command.end(), options.begin(), options.end());
  Program program(command);
  const Outcome outcome = program.wait(kFaultLimitSeconds);
  CAPTURE(outcome.err);
  if (outcome.exit_code == 0) {
    ++counts.well;
  } else {
    CHECK_MESSAGE(outcome.exit_code == 3, end_text(outcome));
    expect_sentence(outcome, {"a process that is not a rank"});
    CHECK(outcome.err.find(" failed in step") == std::string::npos);  // nobody is blamed
    ++counts.turned_away;
  }
  CHECK(wait_until_gone(program.pid(), 2));
}

}  // namespace

TEST_CASE(
    "strangers on every port that ranks open: the run goes on or says who came; nobody is blamed, nothing gets out") {
  if (!are_alone()) {
    MESSAGE("left out: this system lets a process have no network of its own to try it on");
    return;
  }
  for (const char* way : {"silent", "garbage", "opcodes", "megabyte", "half", "drop", "replay"}) {
    // On a busy machine a stranger may not get its turn before a run is over, so there are more runs then.
    constexpr long kEnough = 40;
    Counts counts;
    long of_way = 0;
    for (int round = 0; of_way < kEnough && round < 100; ++round) {
      Stranger at_work(way);
      for (int run = 0; run < 3; ++run) run_once({"--network", "shared"}, counts);
      at_work.end();
      CHECK(at_work.received == 0);
      of_way += at_work.connections;
    }
    CHECK(of_way >= kEnough);
    MESSAGE(std::string(way) << ": " << of_way << " connections, " << counts.well << " runs went on, "
                             << counts.turned_away << " ended with a sentence");
  }
}

TEST_CASE("ranks that are processes have a network of their own: a stranger sees no port, and every run goes on") {
  if (!are_alone()) {
    MESSAGE("left out: this system lets ranks have no network of their own");
    return;
  }
  Counts counts;
  Stranger at_work("mixed");
  for (int run = 0; run < 5; ++run) run_once({}, counts);
  at_work.end();
  CHECK(counts.well == 5);
  CHECK(at_work.connections == 0);
}

TEST_CASE("--network: private moves the ranks and not the parent, shared nobody, other words are refused") {
  const auto network_of = [](pid_t pid) {
    char name[64] = {};
    const ssize_t length = readlink(("/proc/" + std::to_string(pid) + "/ns/net").c_str(), name, sizeof(name) - 1);
    return std::string(name, static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  };
  // Root needs no namespace of users for it, everybody else does: both ways are tried where the test is root.
  const uid_t nobody_else = 61000 + static_cast<uid_t>(getpid()) % 4000;
  for (const uid_t user : geteuid() == 0 ? std::vector<uid_t>{0, nobody_else} : std::vector<uid_t>{geteuid()}) {
    const auto become_user = [user] {
      if (user != geteuid() && (setgroups(0, nullptr) != 0 || setresgid(user, user, user) != 0 ||
                                setresuid(user, user, user) != 0 || access(fault_program().c_str(), X_OK) != 0))
        _exit(98);
    };
    const int allowed = exit_code_of_child([&] {
      become_user();
      return unshare(user == 0 ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 0 : 1;
    });
    CAPTURE(user);
    if (allowed == 98) {
      MESSAGE("left out: another user may not run " << fault_program());
      continue;
    }
    for (const std::vector<std::string>& options :
         std::vector<std::vector<std::string>>{{}, {"--network", "private"}, {"--network", "shared"}}) {
      std::vector<std::string> command = {fault_program(), "--mode", "loop", "--seconds", "60"};
      command.insert(command.end(), options.begin(), options.end());
      Program program(command, become_user);
      REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
      const std::vector<pid_t> ranks = children_of(program.pid());
      REQUIRE(ranks.size() == 8);
      CHECK(network_of(program.pid()) == network_of(getpid()));
      const bool moved = allowed == 0 && (options.empty() || options.back() == "private");
      for (const pid_t rank : ranks) {
        CHECK(network_of(rank) == network_of(ranks[0]));
        CHECK((network_of(rank) != network_of(getpid())) == moved);
      }
      kill(program.pid(), SIGKILL);  // the ranks still hear of it, in whatever network they are
      CHECK(wait_until_gone(program.pid(), 5));
    }
  }
  const Outcome refused = run_program({fault_program(), "--network", "lan"}, kFaultLimitSeconds);
  CHECK(refused.exit_code == 2);
  expect_sentence(refused, {"--network lan is not known; it takes private or shared"});
}

TEST_CASE("whoever stops the process that makes the network does not stop the run: it goes on without one") {
  const pid_t run = fork();
  if (run == 0) {
    while (PrivateNetwork().exists()) {  // until a child is stopped before its work is done
    }
    _exit(42);
  }
  bool stopped = false;
  int status = 0;
  for (int waited = 0; waitpid(run, &status, WNOHANG) == 0; ++waited) {
    if (waited == 600000) kill(run, SIGKILL);
    for (const pid_t child : children_of(run)) stopped = kill(child, SIGSTOP) == 0 || stopped;
    usleep(100);
  }
  CHECK(stopped);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 42);
}

TEST_CASE("whoever kills the process that makes the network does not take the network from the run: another makes it") {
  if (!PrivateNetwork(2).exists()) {
    MESSAGE("left out: this system lets a process have no two networks with a cable between them");
    return;
  }
  constexpr int kNetworks = 40;
  const pid_t run = fork();
  if (run == 0) {
    for (int network = 0; network < kNetworks; ++network)
      if (!PrivateNetwork(2).exists()) _exit(42);
    _exit(0);
  }
  // Of the children that are seen every other one is killed: whoever takes its place may go on.
  int seen = 0, killed = 0, status = 0;
  pid_t last = 0;
  for (int waited = 0; waitpid(run, &status, WNOHANG) == 0; ++waited) {
    REQUIRE(waited < 600000);
    for (const pid_t child : children_of(run)) {
      if (child == last) continue;
      last = child;
      if (++seen % 2 == 1) killed += kill(child, SIGKILL) == 0 ? 1 : 0;
    }
    usleep(100);
  }
  CHECK(killed > 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
