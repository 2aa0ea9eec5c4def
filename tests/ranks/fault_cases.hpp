#pragma once

#include <string>
#include <vector>

#include "tests/ranks/left_behind.hpp"
#include "tests/ranks/run_program.hpp"

namespace muonwalk::testing {

/// Far more than a run with --timeout 2 needs, and less than the 30 s that Gloo waits when nobody tells it otherwise.
constexpr double kFaultLimitSeconds = 25;

/// One run of fault_program and how it has to end.
struct FaultCase {
  std::vector<std::string> options;
  int exit_code = 0;
  std::vector<std::string> words;  ///< what the one sentence on standard error has to say
};

/// The path of fault_program, which lies beside this test's own program.
std::string fault_program();

/// Leaves the program that is about to start a standard output whose reader has gone.
void no_reader();

/// Runs the cases, a few at a time, with --timeout 2 unless they name their own, and expects: the exit code, one
/// sentence with these words (none when the code is 0), and no process left.
void run_cases(const std::vector<FaultCase>& cases);

/// Expects one sentence on standard error, in the name of fault_program, that has these words.
void expect_sentence(const Outcome& outcome, const std::vector<std::string>& words);

}  // namespace muonwalk::testing
