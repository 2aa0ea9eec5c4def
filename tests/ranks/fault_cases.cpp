#include "tests/ranks/fault_cases.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace muonwalk::testing {
namespace {

struct Running {
  const FaultCase* expected;
  std::unique_ptr<Program> program;
};

std::string command_line(const FaultCase& fault) {
  std::string text = "fault_program";
  for (const std::string& word : fault.options) text += " " + word;
  return text;
}

void expect_end(const Running& running) {
  const FaultCase& expected = *running.expected;
  INFO("command: " << command_line(expected));
  const Outcome outcome = running.program->wait(kFaultLimitSeconds);
  CAPTURE(outcome.err);
  CHECK_FALSE(outcome.timed_out);
  CHECK(outcome.signal == 0);
  CHECK(outcome.exit_code == expected.exit_code);
  if (expected.exit_code == 0)
    CHECK(outcome.err.empty());
  else
    expect_sentence(outcome, expected.words);
  CHECK(processes_of_session(running.program->pid()).empty());
}

}  // namespace

std::string fault_program() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  REQUIRE(length > 0);
  const std::string own(path, static_cast<std::size_t>(length));
  return own.substr(0, own.rfind('/') + 1) + "fault_program";
}

void no_reader() {
  int ends[2];
  if (pipe(ends) != 0) _exit(99);
  dup2(ends[1], STDOUT_FILENO);
  close(ends[0]);
  close(ends[1]);
}

void expect_sentence(const Outcome& outcome, const std::vector<std::string>& words) {
  CAPTURE(outcome.err);
  CHECK(lines_of(outcome.err).size() == 1);
  CHECK(outcome.err.rfind("fault_program: ", 0) == 0);
  for (const std::string& word : words) {
    CAPTURE(word);
    CHECK(outcome.err.find(word) != std::string::npos);
  }
}

void run_cases(const std::vector<FaultCase>& cases) {
  constexpr std::size_t kAtATime = 8;
  for (std::size_t first = 0; first < cases.size(); first += kAtATime) {
    std::vector<Running> running;
    for (std::size_t i = first; i < std::min(cases.size(), first + kAtATime); ++i) {
      std::vector<std::string> command = {fault_program()};
      command.insert(command.end(), cases[i].options.begin(), cases[i].options.end());
      if (std::count(command.begin(), command.end(), "--timeout") == 0)
        command.insert(command.end(), {"--timeout", "2"});
      running.push_back({&cases[i], std::make_unique<Program>(command)});
    }
    for (const Running& one : running) expect_end(one);
  }
}

}  // namespace muonwalk::testing
