#pragma once

#include <functional>
#include <string>

namespace muonwalk::testing {

/// How a process ended, and what it wrote.
struct Ended {
  int exit_code = -1;  // -1 where a signal ended it
  int signal = 0;
  std::string out, err;  // where they went into pipes
};

/// Where a child's standard error goes.
enum class Errors { apart, with_output };

/// Runs a function in a forked process, which ends with what it returns. One that hangs is ended by SIGALRM.
Ended in_child(const std::function<int()>& what, Errors errors = Errors::apart);

/// Writes to standard error as a handler of a signal may.
void say(const std::string& words);

}  // namespace muonwalk::testing
