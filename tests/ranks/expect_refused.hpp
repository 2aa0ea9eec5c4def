#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/ranks/run_program.hpp"

namespace muonwalk::testing {

/// Options of a program, and words of the sentence that refuses them.
using Refusals = std::vector<std::pair<std::vector<std::string>, std::string>>;

/// Checks that each of these is refused: exit code 2, one sentence with the words, and nothing on standard output.
inline void expect_refused(const std::vector<std::string>& program, const Refusals& refusals) {
  for (const auto& [options, words] : refusals) {
    std::vector<std::string> command = program;
    command.insert(command.end(), options.begin(), options.end());
    const Outcome outcome = run_program(command, 120);
    CAPTURE(words);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.out.empty());
    CHECK(lines_of(outcome.err).size() == 1);
    CHECK(outcome.err.find(words) != std::string::npos);
  }
}

}  // namespace muonwalk::testing
