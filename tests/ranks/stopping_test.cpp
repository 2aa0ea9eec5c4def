// A lesson that stops when asked: after a whole step, the same one everywhere, whenever the signal comes.

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <random>
#include <string>
#include <vector>

#include "tests/io/temporary_folder.hpp"
#include "tests/ranks/fault_cases.hpp"

using namespace muonwalk::testing;

namespace {

constexpr char kHeard[] = "stopping_program: stopping after this step; Ctrl-C again ends at once\n";
constexpr char kEnded[] = "stopping_program: interrupted; every rank was ended and nothing was left behind\n";

using Words = std::vector<std::string>;
const std::vector<Words> kWorlds = {{}, {"--world", "fibers"}, {"--dp", "1", "--tp", "1"}};

std::string stopping_program() {
  const std::string beside = fault_program();
  return beside.substr(0, beside.rfind('/') + 1) + "stopping_program";
}

Words command(const Words& options, const Words& more = {}) {
  Words all = {stopping_program(), "--timeout", "10"};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

// The number before " steps" in a line of the program or of all ranks that ends so; 0 for other lines.
int steps_in(const std::string& line) {
  const std::size_t took = line.rfind("took ");
  // Of a run of one, "rank 0" is every rank.
  const auto says = [&](const char* who) { return line.rfind(who, 0) == 0; };
  if (!says("the program ") && !says("  every rank ") && !says("  rank 0   took ")) return 0;
  if (took == std::string::npos || line.size() < 6 || line.substr(line.size() - 6) != " steps") return 0;
  return std::stoi(line.substr(took + 5));
}

// How many steps the run took, on which the program and each of its ranks agree; 0 where they don't. Ranks that agree
// say it in one line.
int agreed_steps(const Outcome& outcome) {
  std::vector<int> told;
  for (const std::string& line : lines_of(outcome.out))
    if (line.find(" · tell") != std::string::npos)
      told.clear();  // what was told before was not the end
    else if (const int steps = steps_in(line))
      told.push_back(steps);
  const bool agreed = told.size() == 2 && std::vector<int>(told.size(), told[0]) == told;
  return agreed ? told[0] : 0;
}

// Expects that the run has stopped after a whole step, and returns its number.
int expect_stopped(Program& program) {
  const Outcome outcome = program.wait(kFaultLimitSeconds);
  CAPTURE(outcome.out);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 3);
  const int steps = agreed_steps(outcome);
  CHECK(steps > 0);
  CHECK(outcome.err == kHeard + fmt::format("stopping_program: interrupted after step {}; --resume goes on\n", steps));
  CHECK(outcome.out.find("OK") == std::string::npos);
  CHECK(processes_of_session(program.pid()).empty());
  return steps;
}

}  // namespace

TEST_CASE("asked at any moment: the run stops after a whole step, which is the same on every rank and in the program") {
  std::random_device device;
  const unsigned seed = device();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 40; ++i) {
    const Words& world = kWorlds[random() % kWorlds.size()];
    const unsigned delay = random() % 150000;
    const int number = random() % 2 == 0 ? SIGINT : SIGTERM;
    CAPTURE(i);
    CAPTURE(delay);
    Program program(command(world));
    REQUIRE(program.wait_for_output("ready", kFaultLimitSeconds));  // no rank is there yet
    usleep(delay);
    kill(-program.pid(), number);
    expect_stopped(program);
  }
}

TEST_CASE("asked before the ranks exist: one step is taken") {
  for (const Words& world : kWorlds) {
    Program program(command(world, {"--mode", "ask_before_start"}));
    CHECK(expect_stopped(program) == 1);
  }
}

TEST_CASE("asked between two steps: ranks that are fibers stop after the next one, and processes not before it") {
  for (const Words& world : kWorlds) {
    Program program(command(world, {"--mode", "ask_between", "--at", "17"}));
    const int steps = expect_stopped(program);
    CHECK(steps >= 17);
    if (!world.empty() && world[0] == "--world") CHECK(steps == 17);
  }
}

TEST_CASE("asked after the last step: it is heard, and the run comes to its end") {
  for (const Words& world : kWorlds) {
    Program program(command(world, {"--mode", "ask_afterwards", "--steps", "5"}));
    const Outcome outcome = program.wait(kFaultLimitSeconds);
    CHECK(outcome.exit_code == 0);
    CHECK(outcome.err == kHeard);
    CHECK(agreed_steps(outcome) == 5);
    CHECK(outcome.out.find("stopping_program: OK") != std::string::npos);
  }
}

TEST_CASE("a second Ctrl-C, SIGHUP or SIGQUIT ends a run that hangs at once; a second SIGTERM does not") {
  for (const int first : {SIGINT, SIGTERM})
    for (const int second : {SIGINT, SIGHUP, SIGQUIT}) {
      CAPTURE(first);
      CAPTURE(second);
      Program program(command({"--mode", "hang", "--at", "1", "--timeout", "100"}));
      REQUIRE(program.wait_for_output("ready", kFaultLimitSeconds));
      kill(-program.pid(), first);
      REQUIRE(program.wait_for_error(kHeard, kFaultLimitSeconds));
      kill(-program.pid(), SIGTERM);
      kill(-program.pid(), second);
      const Outcome outcome = program.wait(kFaultLimitSeconds);
      CHECK(outcome.exit_code == 3);
      CHECK(outcome.err == std::string(kHeard) + kEnded);
      CHECK(wait_until_gone(program.pid(), 2));
    }
}

TEST_CASE("a rank that hangs after the request is still found") {
  Program program(command({"--mode", "hang", "--at", "1", "--timeout", "2"}));
  REQUIRE(program.wait_for_output("ready", kFaultLimitSeconds));
  kill(-program.pid(), SIGINT);
  const Outcome outcome = program.wait(kFaultLimitSeconds);
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 3);
  CHECK(lines_of(outcome.err).size() == 2);
  CHECK(outcome.err.find(kHeard) == 0);
  CHECK(outcome.err.find("in step 'quiet step 1'") != std::string::npos);
  CHECK(processes_of_session(program.pid()).empty());
}

TEST_CASE("a run that stops leaves no recording and no trace") {
  const TemporaryFolder folder;
  Program program(command({"--mode", "ask_between", "--at", "5", "--record", folder.file("run.json"), "--trace",
                           folder.file("trace.json")}));
  expect_stopped(program);
  CHECK(folder.names().empty());
}

TEST_CASE("a lesson that does not ask to be asked ends at once, as all others do") {
  for (const Words& world : kWorlds)
    for (const int number : {SIGINT, SIGTERM}) {
      Program program(command(world, {"--deaf"}));
      REQUIRE(program.wait_for_output("that was it", kFaultLimitSeconds));
      kill(-program.pid(), number);
      const Outcome outcome = program.wait(kFaultLimitSeconds);
      CHECK(outcome.exit_code == 3);
      CHECK(outcome.err == kEnded);
      CHECK(processes_of_session(program.pid()).empty());
    }
}

TEST_CASE("a rank that ends a step before rank 0 has decided is told so, asked or not") {
  for (const Words& world : {kWorlds[0], kWorlds[1]}) {
    Program program(command(world, {"--mode", "decide_late"}));
    const Outcome outcome = program.wait(kFaultLimitSeconds);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 3);
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.err.find("it ended the step before rank 0 had decided") != std::string::npos);
  }
}
