// What the system does not give: room for the output, files, processes, cores.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/ranks/fault_cases.hpp"

using namespace muonwalk::testing;

namespace {

std::vector<std::string> quick(std::vector<std::string> options) {
  std::vector<std::string> command = {fault_program(), "--timeout", "2"};
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

// It ends well, or with a sentence; and nothing is left.
void expect_well_or_sentence(const std::vector<std::string>& command, const std::function<void()>& prepare, int& well,
                             int& refused) {
  Program program(command, prepare);
  const Outcome outcome = program.wait(kFaultLimitSeconds);
  CAPTURE(outcome.err);
  CHECK_FALSE(outcome.timed_out);
  if (outcome.exit_code == 0) {
    ++well;
  } else {
    CHECK_MESSAGE(outcome.exit_code == 3, end_text(outcome));
    expect_sentence(outcome, {});
    ++refused;
  }
  CHECK(wait_until_gone(program.pid(), 2));
}

}  // namespace

TEST_CASE("standard output that takes nothing: a sentence with the system's reason, exit 3") {
  const auto full = [] { dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO); };
  const auto closed = [] { close(STDOUT_FILENO); };
  const auto all_closed_but_errors = [] {
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
  };
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {}, {"--verbose", "2"}, {"--verbose", "0"}, {"--help"}, {"--world", "fibers"}}) {
    CAPTURE(options.size());
    const Outcome on_full = run_program(quick(options), kFaultLimitSeconds, full);
    CHECK(on_full.exit_code == 3);
    expect_sentence(on_full, {"output", "No space left on device"});
    for (const auto& prepare : {std::function<void()>(closed), std::function<void()>(all_closed_but_errors)}) {
      Program program(quick(options), prepare);
      const Outcome on_closed = program.wait(kFaultLimitSeconds);
      CHECK(on_closed.exit_code == 3);
      expect_sentence(on_closed, {"output", "Bad file descriptor"});
      CHECK(processes_of_session(program.pid()).empty());
    }
  }
}

TEST_CASE(
    "standard error that takes nothing: the exit code is the one that there would be otherwise, and nothing is left") {
  const auto full = [] { dup2(open("/dev/full", O_WRONLY), STDERR_FILENO); };
  const auto closed = [] { close(STDERR_FILENO); };
  const auto all_closed = [] {
    for (int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(file);
  };
  for (const auto& prepare : {std::function<void()>(full), std::function<void()>(closed)}) {
    CHECK(run_program(quick({}), kFaultLimitSeconds, prepare).exit_code == 0);
    CHECK(run_program(quick({"--dp", "0"}), kFaultLimitSeconds, prepare).exit_code == 2);
    CHECK(run_program(quick({"--fault", "throw:1:1"}), kFaultLimitSeconds, prepare).exit_code == 3);
    Program looping({fault_program(), "--mode", "loop", "--seconds", "60"}, prepare);
    REQUIRE(looping.wait_for_output("step 1", kFaultLimitSeconds));
    kill(looping.pid(), SIGINT);
    CHECK(looping.wait(kFaultLimitSeconds).exit_code == 3);
    CHECK(wait_until_gone(looping.pid(), 2));
  }
  Program silent(quick({}), all_closed);
  CHECK(silent.wait(kFaultLimitSeconds).exit_code == 3);
  CHECK(wait_until_gone(silent.pid(), 2));
}

TEST_CASE("a reader that leaves early, as head -1 does: the run ends and leaves nothing behind") {
  const auto unread_and_ignored = [] {
    no_reader();
    signal(SIGPIPE, SIG_IGN);
  };
  // A starter that ignores the signal changes nothing: what it did to signals is taken back.
  for (const auto& prepare : {std::function<void()>(no_reader), std::function<void()>(unread_and_ignored)}) {
    Program killed(quick({"--verbose", "2"}), prepare);
    CHECK(killed.wait(kFaultLimitSeconds).signal == SIGPIPE);
    CHECK(wait_until_gone(killed.pid(), kFaultLimitSeconds));
  }
}

namespace {

// Leaves the program that is about to start no more than `most` of something. LeakSanitizer can't look for leaks then:
// it needs a process of its own and files to name functions from, and Gloo forgets the addresses of a socket that it
// can't open.
void limit_to(decltype(RLIMIT_NOFILE) resource, rlim_t most) {
  setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
  const rlimit few{most, most};
  setrlimit(resource, &few);
}

}  // namespace

TEST_CASE("files that run out, at any point: it works or says so in a sentence, and leaves nothing behind") {
  for (const std::vector<std::string>& world : std::vector<std::vector<std::string>>{{}, {"--world", "fibers"}}) {
    int well = 0, refused = 0;
    for (rlim_t files : {6, 9, 12, 16, 18, 24, 512}) {
      CAPTURE(world.size());
      CAPTURE(files);
      const auto limit = [files] { limit_to(RLIMIT_NOFILE, files); };
      expect_well_or_sentence(quick(world), limit, well, refused);
    }
    CHECK(well > 0);
    if (world.empty()) CHECK(refused > 0);
  }
}

#ifdef __linux__
TEST_CASE("ports that run out: the sentence says so, and nobody is said to have died") {
  constexpr int kCannotMakeSuchANetwork = 98;
  // Fewer than ranks; fewer than pairs of them, each of which listens; enough to listen, and too few to connect.
  for (const int last : {50003, 50006, 50008, 50010, 50012}) {
    CAPTURE(last);
    const std::string ports = "50000 " + std::to_string(last);
    const Outcome outcome = run_program(quick({"--network", "shared"}), kFaultLimitSeconds, [&] {
      ifreq loopback = {};
      loopback.ifr_name[0] = 'l', loopback.ifr_name[1] = 'o';
      loopback.ifr_flags = IFF_UP;
      const bool made =
          unshare(CLONE_NEWNET) == 0 && ioctl(socket(AF_INET, SOCK_DGRAM, 0), SIOCSIFFLAGS, &loopback) == 0 &&
          static_cast<bool>(std::ofstream("/proc/sys/net/ipv4/ip_local_port_range") << ports << std::flush);
      if (!made) _exit(kCannotMakeSuchANetwork);
    });
    if (outcome.exit_code == kCannotMakeSuchANetwork) {
      MESSAGE("left out: no network with few ports can be made here");
      return;
    }
    CHECK(outcome.exit_code == 3);
    expect_sentence(outcome, {"no port is free", "ask for fewer ranks"});
    CHECK(outcome.err.find("died or left") == std::string::npos);
  }
}
#endif

TEST_CASE("processes that run out, at any point: it works or says so in a sentence, and leaves nothing behind") {
  // The system sets root no limit, so root becomes somebody who has no process yet.
  const bool root = geteuid() == 0;
  const uid_t nobody_else = 61000 + static_cast<uid_t>(getpid()) % 4000;
  const auto limited = [&](rlim_t processes) {
    return [=] {
      limit_to(RLIMIT_NPROC, processes);
      if (root && (setgroups(0, nullptr) != 0 || setresgid(nobody_else, nobody_else, nobody_else) != 0 ||
                   setresuid(nobody_else, nobody_else, nobody_else) != 0))
        _exit(98);
    };
  };
  const Outcome first = run_program({fault_program(), "--help"}, kFaultLimitSeconds, limited(64));
  if (first.exit_code != 0) {
    MESSAGE("left out: another user may not run " << fault_program() << " (" << end_text(first) << ", " << first.err
                                                  << ")");
    return;
  }
  for (const std::vector<std::string>& world : std::vector<std::vector<std::string>>{{}, {"--world", "fibers"}}) {
    int well = 0, refused = 0;
    for (rlim_t processes : {1, 2, 5, 9, 12, 17, 64}) {
      CAPTURE(world.size());
      CAPTURE(processes);
      expect_well_or_sentence(quick(world), limited(processes), well, refused);
    }
    if (root) CHECK(well > 0);
    if (root && world.empty()) CHECK(refused > 0);
  }
}

#if defined(__linux__)
TEST_CASE("more threads than cores: they wait asleep, unless the reader wants it otherwise") {
  const auto environment_of_ranks = [](const char* threads, const char* policy) {
    Program program({fault_program(), "--mode", "loop", "--seconds", "60", "--threads", threads}, [policy] {
      if (policy == nullptr)
        unsetenv("OMP_WAIT_POLICY");
      else
        setenv("OMP_WAIT_POLICY", policy, 1);
    });
    REQUIRE(program.wait_for_output("step 1", kFaultLimitSeconds));
    std::ifstream file("/proc/" + std::to_string(program.pid()) + "/environ");
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  CHECK(environment_of_ranks("256", nullptr).find("OMP_WAIT_POLICY=passive") != std::string::npos);
  CHECK(environment_of_ranks("256", "active").find("OMP_WAIT_POLICY=active") != std::string::npos);
  CHECK(environment_of_ranks("1", nullptr).find("OMP_WAIT_POLICY") == std::string::npos);
}
#endif
