#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>
#include <type_traits>

/// Runs `action` in a child process. Returns what the child exits with, which is what the action returns (99 if it
/// returns nothing), or 128 and the signal that has killed it.
template <class Action>
int in_child(const Action& action) {
  std::cout.flush();  // or the child would print it as well when it exits
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if constexpr (!std::is_void_v<decltype(action())>) _exit(action());
    action();
    _exit(99);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
