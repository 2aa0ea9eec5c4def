// Lessons under Open MPI's mpirun: the same screens, bugs and refusals, and whatever ends a run leaves nothing behind.

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "tests/launch/launched.hpp"

using namespace muonwalk::testing;

namespace {

// mpirun gives its processes a terminal that could show colours, and has its own opinion on root and on more ranks than
// cores.
std::unique_ptr<Program> mpirun(int processes, const std::string& program, std::vector<std::string> words) {
  words.insert(words.begin(), {MUONWALK_MPIRUN, "--oversubscribe", "-n", std::to_string(processes), program});
  return std::make_unique<Program>(words, [] {
    for (const char* yes : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"}) setenv(yes, "1", 1);
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
  });
}

std::string in_environment_of(pid_t process, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ");
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::size_t at = ('\0' + all).find('\0' + name + '=');
  return at == std::string::npos ? "" : std::string(all.c_str() + at + name.size() + 1);
}

// The process that mpirun has started for a rank; its child is the rank.
pid_t launched(const Program& run, int rank) {
  for (const pid_t child : children_of(run.pid()))
    if (in_environment_of(child, "OMPI_COMM_WORLD_RANK") == std::to_string(rank)) return child;
  FAIL("mpirun has not started rank " << rank);
  return -1;
}

// How long a rank is waited for, and how many runs there are at a time. Under AddressSanitizer 32 processes need longer
// to begin than 4 s where the machine has other work, and then the one that was asked to hang is not the one that is
// late.
#ifdef __SANITIZE_ADDRESS__
constexpr const char* kPatience = "10";
constexpr std::size_t kAtATime = 4;
#else
constexpr const char* kPatience = "4";
constexpr std::size_t kAtATime = 8;
#endif

// "for 4 s".
std::string patiently(const char* word) { return std::string(word) + " " + kPatience + " s"; }

struct Case {
  std::vector<std::string> words;
  int exit_code;
  std::vector<std::string> said;
};

// Four ranks for each case, a few cases at a time: most of them wait.
void run_four(const std::vector<Case>& cases) {
  for (std::size_t first = 0; first < cases.size(); first += kAtATime) {
    std::vector<std::unique_ptr<Program>> running;
    const std::size_t last = std::min(cases.size(), first + kAtATime);
    for (std::size_t i = first; i < last; ++i) {
      std::vector<std::string> words = cases[i].words;
      if (std::count(words.begin(), words.end(), "--dp") == 0) words.insert(words.end(), {"--dp", "2", "--tp", "2"});
      words.insert(words.end(), {"--timeout", kPatience});
      running.push_back(mpirun(4, fault_program(), words));
    }
    for (std::size_t i = first; i < last; ++i) {
      CAPTURE(cases[i].words.back());
      CAPTURE(i);
      const Outcome outcome = running[i - first]->wait(kFaultLimitSeconds);
      CHECK_FALSE(outcome.timed_out);
      CHECK(outcome.exit_code == cases[i].exit_code);
      expect_one_sentence("fault_program", outcome.err, cases[i].said);
      CHECK(wait_until_gone(running[i - first]->pid(), 5));
    }
  }
}

// A run of four that talks for a minute, unless something ends it.
std::unique_ptr<Program> looping() {
  auto run =
      mpirun(4, fault_program(), {"--dp", "2", "--tp", "2", "--mode", "loop", "--seconds", "60", "--timeout", "20"});
  REQUIRE(run->wait_for_output("step 1", kFaultLimitSeconds));
  return run;
}

}  // namespace

TEST_CASE("Open MPI: lessons on 2, 4 and 8 ranks print what is expected, apart from the first line") {
  struct Lesson {
    const char* name;
    int ranks;
  };
  // Lesson 18 has three worlds, one after the other.
  for (const Lesson& lesson :
       {Lesson{"lesson_05_tp_gather", 2}, Lesson{"lesson_18_read_a_trace", 4}, Lesson{"lesson_01_grid", 8}}) {
    CAPTURE(lesson.name);
    const auto run = mpirun(lesson.ranks, program_beside(lesson.name), {});
    const Outcome outcome = run->wait(60);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 0);
    CHECK(without_first_line(outcome.out) == without_first_line(expected_screen(lesson.name)));
    REQUIRE_FALSE(lines_of(outcome.out).empty());
    CHECK(lines_of(outcome.out)[0].find(std::to_string(lesson.ranks) + " processes over Gloo, started by Open MPI") !=
          std::string::npos);
    CHECK(outcome.err.find(std::string(lesson.name) + ": started by Open MPI: rank 0 of " +
                           std::to_string(lesson.ranks) + " (OMPI_COMM_WORLD_RANK)") != std::string::npos);
    CHECK(wait_until_gone(run->pid(), 5));
  }
}

TEST_CASE("Open MPI: output to a file has no colours, unless they are asked for") {
  for (const bool asked : {false, true}) {
    CAPTURE(asked);
    if (asked) setenv("CLICOLOR_FORCE", "1", 1);
    const Outcome outcome = mpirun(2, program_beside("lesson_05_tp_gather"), {})->wait(60);
    unsetenv("CLICOLOR_FORCE");
    CHECK(outcome.exit_code == 0);
    CHECK((outcome.out.find('\033') != std::string::npos) == asked);
  }
}

TEST_CASE("Open MPI: 16 ranks print what the same 16 print without a launcher; files are rank 0's and the same") {
  const TemporaryFolder folder;
  const std::string lesson = program_beside("lesson_02_collectives");
  const std::vector<std::string> layout = {"--dp", "16", "--record"};
  std::vector<std::string> here = layout, there = layout;
  here.push_back(folder.file("here.json"));
  there.push_back(folder.file("there.json"));
  here.insert(here.begin(), lesson);
  const Outcome forked = run_program(here, 60), launched = mpirun(16, lesson, there)->wait(60);
  CHECK(forked.exit_code == 0);
  CHECK(launched.exit_code == 0);
  CHECK(without_first_line(forked.out) == without_first_line(launched.out));
  CHECK(folder.names() == std::vector<std::string>{"here.json", "there.json"});
  const auto steps_of = [&](const std::string& name) {
    std::ifstream file(folder.file(name));
    const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::size_t begin = all.find("\"steps\""), end = all.find("\"before\"");  // which has the first line
    REQUIRE(begin < end);
    return all.substr(begin, end - begin);
  };
  CHECK(steps_of("here.json").size() > 1000);
  const bool same = steps_of("here.json") == steps_of("there.json");
  CHECK(same);
}

TEST_CASE("Open MPI: a planted bug is caught, a plan needs no rank, and what rank 0 does alone it does alone") {
  CHECK(mpirun(2, program_beside("lesson_05_tp_gather"), {"--bug", "stale_slice"})->wait(60).exit_code == 1);
  const Outcome plan = mpirun(2, program_beside("lesson_09_full_step"), {"--plan"})->wait(60);
  const Outcome plan_alone = run_program({program_beside("lesson_09_full_step"), "--plan"}, 60);
  CHECK(plan.exit_code == 0);
  CHECK(plan.out == plan_alone.out);
  const std::vector<std::string> mystery = {"--mystery", "1"};
  const Outcome hunt = mpirun(4, program_beside("lesson_10_bug_hunt"), mystery)->wait(60);
  const Outcome hunt_alone = run_program({program_beside("lesson_10_bug_hunt"), "--mystery", "1"}, 60);
  CHECK(hunt.exit_code == hunt_alone.exit_code);
  CHECK(hunt.out == hunt_alone.out);
}

TEST_CASE("Open MPI: what can't work is refused in one sentence with exit code 2") {
  run_four({
      {{"--dp", "3"},
       2,
       {"Open MPI has started 4 processes, but dp 3 × tp 2 is a layout of 6; start 6, or try --dp 2"}},
      {{"--foo"}, 2, {"--foo is not an option"}},
      {{"--rank", "1"}, 2, {"--rank 1", "--world-size"}},
      {{"--mode", "usage", "--culprit", "3"}, 2, {"--culprit refuses its input"}},
  });
}

TEST_CASE(
    "Open MPI: a rank that dies, fails, stops, hangs or never comes ends the run, with rank, host, step and cause") {
  char host[256] = {};
  REQUIRE(gethostname(host, sizeof host - 1) == 0);
  const std::string first = std::string("rank 0 on ") + host, third = std::string("rank 3 on ") + host;
  run_four(
      {{{"--fault", "stop:3:2"},
        3,
        {third + " was stopped by signal 19 (SIGSTOP) in step 'trouble'", patiently("within")}},
       {{"--fault", "hang:3:2"}, 3, {third + " did nothing in step 'trouble' " + patiently("for")}},
       {{"--fault", "never-connect:3"}, 3, {third + " never connected", "'rendezvous'"}},
       {{"--fault", "kill:0:2"}, 3, {first + " was killed by signal 9 (SIGKILL) in step 'trouble'"}},
       {{"--fault", "throw:3:0"}, 3, {third + " failed in step 'rendezvous': it threw because --fault asked for it"}},
       {{"--mode", "goes_astray"}, 3, {"went on to 'astray' when this program had come to its end"}},
       {{"--mode", "dies_at_the_end", "--culprit", "3"}, 3, {third + " was killed by signal 9 (SIGKILL)"}},
       {{"--mode", "killed_during", "--culprit", "3"},
        3,
        {third + " was killed by signal 9 (SIGKILL) in step 'trouble'"}}});
}

TEST_CASE("Open MPI: a launcher that ends, or is killed, leaves nothing behind, and so does a launched process") {
  struct Blow {
    std::unique_ptr<Program> run;
    int signal;
    int of;  // the rank whose process gets it; −1: mpirun
  };
  // Each gets its blow before the next one starts, and all of them end at the same time.
  std::vector<Blow> blows;
  const auto add = [&](int number, int of) {
    blows.push_back({looping(), number, of});
    kill(of < 0 ? blows.back().run->pid() : launched(*blows.back().run, of), number);
  };
  for (const int number : {SIGTERM, SIGINT, SIGKILL}) add(number, -1);
  for (const int rank : {0, 3}) add(SIGKILL, rank);
  for (const Blow& blow : blows) {
    CAPTURE(blow.signal);
    CAPTURE(blow.of);
    const Outcome outcome = blow.run->wait(kFaultLimitSeconds);
    CHECK_FALSE(outcome.timed_out);
    CHECK((outcome.exit_code != 0 || outcome.signal != 0));
    CHECK(wait_until_gone(blow.run->pid(), 10));
    if (blow.of == 3) expect_one_sentence("fault_program", outcome.err, {"rank 3 on ", " was lost in step '"});
  }
}
