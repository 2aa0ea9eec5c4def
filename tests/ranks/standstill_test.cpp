// The clock that stands still while the process itself is stopped, and the watch that tells idle ranks from starved
// ones.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#if defined(__linux__)
#include <sys/prctl.h>
#include <sys/ptrace.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/rank_process.hpp"
#include "sim/ranks/rank_watch.hpp"
#include "tests/cases.hpp"

using muonwalk::CollectiveKind;
using muonwalk::sim::AwakeClock;
using muonwalk::sim::ComputeWatch;
using muonwalk::sim::monotonic_seconds;
using muonwalk::sim::Progress;
using muonwalk::sim::ProgressSlot;
using muonwalk::sim::RankProcess;
using muonwalk::sim::StandstillWatch;
using muonwalk::sim::WatchedRanks;

TEST_CASE("AwakeClock: runs as other clocks do while somebody looks") {
  const double began = monotonic_seconds();
  AwakeClock clock;
  double seconds = 0;
  while (monotonic_seconds() - began < 0.2) seconds = clock.seconds();
  CHECK(seconds > 0.05);
  CHECK(seconds <= monotonic_seconds() - began);
}

TEST_CASE("AwakeClock: a process that is stopped for three seconds has been awake for little more than one") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    AwakeClock clock;
    kill(getpid(), SIGSTOP);
    const double seconds = clock.seconds();
    const ssize_t wrote = write(ends[1], &seconds, sizeof seconds);
    _exit(wrote == sizeof seconds ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(pid, &status, WUNTRACED) == pid);
  REQUIRE(WIFSTOPPED(status));
  sleep(3);
  kill(pid, SIGCONT);
  double seconds = -1;
  CHECK(read(ends[0], &seconds, sizeof seconds) == sizeof seconds);
  CHECK(seconds > 0.9);
  CHECK(seconds < 1.1);
  CHECK(waitpid(pid, &status, 0) == pid);
  for (int file : ends) close(file);
}

TEST_CASE("RankProcess: owns its process and its pipe; its end ends both, or the pipe alone if left to its parent") {
  for (const bool left : {false, true}) {
    CAPTURE(left);
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0)
      while (true) pause();
    {
      RankProcess rank(pid, ends[0]);
      rank.observe();
      CHECK_FALSE(rank.ended());
      CHECK(kill(pid, 0) == 0);
      CHECK(rank.file() == ends[0]);
      if (left) rank.leave_to_parent();
    }
    CHECK(waitpid(pid, nullptr, WNOHANG) == (left ? 0 : -1));  // -1: it has been waited for
    CHECK(fcntl(ends[0], F_GETFD) == -1);
    close(ends[1]);
    if (!left) continue;
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, nullptr, 0) == pid);
  }
}

TEST_CASE("RankProcess: a process counts as stopped for as long as it is, however often it stops and goes on") {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0)
    while (true) pause();
  RankProcess rank(pid, -1);
  // The system has a change to tell when this returns, and still has it afterwards.
  const auto wait_until = [pid](int change) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid), &info, change | WNOWAIT) == 0 && info.si_pid == pid;
  };
  for (int times = 1; times <= 3; ++times) {
    CAPTURE(times);
    REQUIRE(kill(pid, SIGSTOP) == 0);
    REQUIRE(wait_until(WSTOPPED));
    rank.observe();
    CHECK(rank.stopped());
    CHECK(rank.stop_signal() == SIGSTOP);
    rank.observe();  // nothing new
    CHECK(rank.stopped());
    REQUIRE(kill(pid, SIGCONT) == 0);
    REQUIRE(wait_until(WCONTINUED));
    rank.observe();
    CHECK_FALSE(rank.stopped());
    CHECK_FALSE(rank.ended());
  }
}

TEST_CASE("RankProcess: a process that is not a child, or no child any more, has ended and gets no signal") {
  int ends[2], asked[2], told[2];
  for (int* each : {ends, asked, told}) REQUIRE(pipe(each) == 0);
  // A process of somebody else's: the child of a child, whose number this process happens to know. It answers once.
  const pid_t between = fork();
  REQUIRE(between >= 0);
  if (between == 0) {
    pid_t pid = fork();
    if (pid != 0) _exit(write(told[1], &pid, sizeof pid) == sizeof pid ? 0 : 1);
    close(told[0]);
    close(asked[1]);
    _exit(read(asked[0], &pid, sizeof pid) == sizeof pid && write(told[1], &pid, sizeof pid) > 0 ? 0 : 1);
  }
  close(told[1]);
  pid_t stranger = 0, answer = 0;
  REQUIRE(read(told[0], &stranger, sizeof stranger) == sizeof stranger);
  RankProcess observed(stranger, ends[0]);
  observed.observe();
  CHECK(observed.ended());
  CHECK(observed.status() == RankProcess::kUnknownStatus);
  { RankProcess(stranger, -1).end(); }
  { RankProcess dropped(stranger, -1); }
  CHECK(write(asked[1], &stranger, sizeof stranger) == sizeof stranger);
  CHECK(read(told[0], &answer, sizeof answer) == sizeof answer);  // or else it was killed, and the pipe has ended
  CHECK(answer == stranger);
  CHECK(waitpid(between, nullptr, 0) == between);
  for (int file : {ends[1], asked[0], asked[1], told[0]}) close(file);
}

#if defined(__linux__)
namespace {

// A process that does `work` forever on the last processor that this one may use.
pid_t start_on_one_processor(void (*work)()) {
  const pid_t pid = fork();
  REQUIRE(pid >= 0);  // it will be killed, and -1 means every process of this user
  if (pid > 0) return pid;
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0)
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0 && CPU_COUNT(&one) == 0; --cpu)
      if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
  work();
  _exit(0);
}

void compute() {
  for (volatile unsigned long count = 0;; ++count) {
  }
}

void compute_when_nobody_else_does() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_IDLE, &none);
  compute();
}

void sleep_on() {
  while (true) pause();
}

// For how long the watch thinks that one process has stood still, after a second and a half. It sees that process as a
// rank.
double seconds_still(pid_t pid) {
  WatchedRanks ranks;
  ranks.push_back(std::make_unique<RankProcess>(pid, -1));
  StandstillWatch watch;
  AwakeClock clock;
  double now = 0, still = 0;
  usleep(200000);  // the process finds its place first
  while ((now = clock.seconds()) < 1.5) {
    still = watch.seconds(ranks, now);
    usleep(10000);
  }
  ranks[0]->leave_to_parent();
  return still;
}

}  // namespace

TEST_CASE(
    "StandstillWatch: a process that sleeps stands still, one that computes does not, nor one that others keep from "
    "it") {
  const pid_t sleeper = start_on_one_processor(sleep_on);
  CHECK(seconds_still(sleeper) > 0.5);
  kill(sleeper, SIGKILL);
  CHECK(waitpid(sleeper, nullptr, 0) == sleeper);

  const pid_t busy = start_on_one_processor(compute);
  CHECK(seconds_still(busy) == 0);
  const pid_t patient = start_on_one_processor(compute_when_nobody_else_does);
  if (access("/proc/self/stat", R_OK) == 0) {
    CHECK(seconds_still(patient) == 0);
  } else {
    MESSAGE("left out: this system does not tell whether a process waits for a processor");
  }
  for (pid_t pid : {busy, patient}) {
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, nullptr, 0) == pid);
  }
}

TEST_CASE("RankWatch: a rank that a debugger holds at its end, for longer than ranks have to leave, is waited for") {
  int go[2], traced[2];
  for (int* each : {go, traced}) REQUIRE(pipe(each) == 0);
  char byte = 0;
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    _exit(read(go[0], &byte, 1) == 1 ? 0 : 1);
  }
  const pid_t debugger = fork();  // not the watch itself, which would be told of the stop
  REQUIRE(debugger >= 0);
  if (debugger == 0) {
    const bool holds = ptrace(PTRACE_SEIZE, pid, nullptr, nullptr) == 0 &&
                       ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr) == 0 && waitpid(pid, nullptr, __WALL) == pid;
    byte = holds ? 'y' : 'n';
    if (write(traced[1], &byte, 1) != 1) _exit(1);
    if (holds) sleep(6);
    _exit(write(go[1], &byte, 1) == 1 ? 0 : 1);  // its end lets go
  }
  REQUIRE(read(traced[0], &byte, 1) == 1);
  muonwalk::sim::Options options;
  options.timeout_seconds = 60;
  Progress progress(1);
  progress.slot(0).stage = ProgressSlot::Stage::finished;
  muonwalk::sim::RankWatch watch(options, progress);
  watch.add(std::make_unique<RankProcess>(pid, -1));
  if (byte == 'y')
    CHECK_NOTHROW(watch.require_ended(0));
  else
    MESSAGE("left out: this system lets no process trace another");
  CHECK(waitpid(debugger, nullptr, 0) == debugger);
  for (int file : {go[0], go[1], traced[0], traced[1]}) close(file);
}
#endif

TEST_CASE("ComputeWatch: what counts is the processor time per thread since the rank's last sign") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    for (volatile int i = 0;; ++i) {
    }
  }
  close(ends[1]);
  WatchedRanks ranks;
  ranks.push_back(std::make_unique<RankProcess>(pid, ends[0]));
  Progress progress(1);
  progress.slot(0).waits_for = ProgressSlot::kNobody;
  ComputeWatch of_one(progress, 1), of_four(progress, 4);
  double now = 0;
  const double limit = 0.05;
  CHECK(of_one.rank_beyond(limit, ranks, now) == -1);
  CHECK(of_four.rank_beyond(limit, ranks, now) == -1);
  const auto look_until_used = [&](double seconds) {
    while (ranks[0]->cpu_seconds() < seconds) usleep(1000);
    now += 100;  // an AwakeClock's seconds decide only how often the watch looks
  };
  const double before = ranks[0]->cpu_seconds();
  look_until_used(before + 1.5 * limit);
  CHECK(of_one.rank_beyond(limit, ranks, now) == 0);
  if (ranks[0]->cpu_seconds() < before + 3.5 * limit) CHECK(of_four.rank_beyond(limit, ranks, now) == -1);
  look_until_used(before + 4.5 * limit);
  CHECK(of_four.rank_beyond(limit, ranks, now) == 0);
  ++progress.slot(0).signs;  // a sign: all begins anew
  now += 100;
  CHECK(of_one.rank_beyond(1000, ranks, now) == -1);
  CHECK(of_four.rank_beyond(1000, ranks, now) == -1);
}

TEST_CASE("Progress: a title is cut where its room ends, and its rank's slot alone changes") {
  constexpr std::size_t kRoom = sizeof ProgressSlot::step - 1;
  const std::string letters = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t length = 0; length < 2 * kRoom; ++length) {
    CAPTURE(length);
    Progress store(3);
    for (int rank = 0; rank < 3; ++rank) store.slot(rank).stage = ProgressSlot::Stage::finished;
    std::string title;
    while (title.size() < length) title += letters[title.size() % letters.size()];
    store.enter_step(1, title);
    CHECK(store.step(1) == title.substr(0, kRoom));
    for (const int rank : {0, 2}) {
      CAPTURE(rank);
      CHECK(store.slot(rank).stage == ProgressSlot::Stage::finished);
      CHECK(store.slot(rank).waits_for == ProgressSlot::kNobody);
      CHECK(store.slot(rank).signs == 1);
      CHECK(store.step(rank) == "rendezvous");
    }
    CHECK(store.slot(1).signs == 2);
  }
}

namespace {

// What Progress::cycle has to say, found by following every rank for as many steps as there are ranks.
std::string expected_cycle(const std::vector<int>& waits_for, const std::vector<CollectiveKind>& waits_in,
                           bool hopeless) {
  const int ranks = static_cast<int>(waits_for.size());
  for (int first = 0; first < ranks; ++first) {
    std::vector<int> members = {first};
    int at = waits_for[static_cast<std::size_t>(first)];
    for (int steps = 0; steps < ranks && at >= 0 && at != first; ++steps) {
      members.push_back(at);
      at = waits_for[static_cast<std::size_t>(at)];
    }
    if (at != first || members.size() < 2 || *std::min_element(members.begin(), members.end()) != first) continue;
    int sends = 0, receives = 0;
    for (const int rank : members) {
      sends += waits_in[static_cast<std::size_t>(rank)] == CollectiveKind::send;
      receives += waits_in[static_cast<std::size_t>(rank)] == CollectiveKind::recv;
    }
    const int count = static_cast<int>(members.size()), collectives = count - sends - receives;
    const bool mixed = collectives > 0 && collectives < count;
    if (count == 2 && sends == 1 && receives == 1) continue;  // they have met
    if (hopeless && sends == 0 && !mixed) continue;
    std::string text = mixed ? "the ranks do not make the same calls: " : "";
    for (int i = 0; i < std::min(count, 8); ++i) {
      const int rank = members[static_cast<std::size_t>(i)];
      text += fmt::format("{} {} for rank {}", i == 0 ? fmt::format("rank {} waits in", rank) : ", which waits in",
                          muonwalk::collective_name(waits_in[static_cast<std::size_t>(rank)]),
                          members[static_cast<std::size_t>((i + 1) % count)]);
    }
    if (count > 8) text += fmt::format(", and so on around {} ranks", count);
    if (sends > 0 && !mixed)
      text +=
          "; a send returns when its receiver has taken the message, so ranks that send to each other post it with "
          "isend, call recv, and then wait for the isend";
    return text;
  }
  return "";
}

}  // namespace

TEST_CASE("Progress: of ranks that wait for each other in a circle it says who, in which calls, and what is wrong") {
  const CollectiveKind kinds[] = {CollectiveKind::send, CollectiveKind::recv, CollectiveKind::all_gather,
                                  CollectiveKind::barrier};
  int cycles = 0;
  for (unsigned seed = 0; seed < muonwalk::testing::cases(3000u); ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const int ranks = 2 + static_cast<int>(random() % 11), some_kinds = 1 + static_cast<int>(random() % 4);
    Progress store(ranks);
    std::vector<int> waits_for;
    std::vector<CollectiveKind> waits_in;
    for (int rank = 0; rank < ranks; ++rank) {
      // Around the circle, now and then elsewhere, to itself never, and sometimes for nobody.
      const unsigned drawn = random() % 12;
      int peer = (rank + 1) % ranks;
      if (drawn < 2) peer = static_cast<int>(random() % static_cast<unsigned>(ranks));
      if (peer == rank || drawn == 2) peer = ProgressSlot::kNobody;
      waits_for.push_back(peer);
      waits_in.push_back(kinds[random() % static_cast<unsigned>(some_kinds)]);
      store.slot(rank).waits_for = peer;
      store.slot(rank).waits_in = waits_in.back();
    }
    for (const bool hopeless : {false, true}) {
      const std::string expected = expected_cycle(waits_for, waits_in, hopeless);
      cycles += expected.empty() ? 0 : 1;
      CHECK(store.cycle(hopeless) == expected);
    }
  }
  CHECK(cycles > muonwalk::testing::cases(500));
}
