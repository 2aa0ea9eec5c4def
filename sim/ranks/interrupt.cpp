#include "sim/ranks/interrupt.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "sim/ranks/options.hpp"
#include "sim/terminal/error_text.hpp"

namespace muonwalk::sim {
namespace {

// A handler may touch little more than this: fixed memory, kill and waitpid.
std::atomic<pid_t> registered[kMostRanks];
char program_name[128];

void end_ranks() {
  for (auto& pid : registered) {
    if (pid <= 0) continue;
    if (waitpid(pid, nullptr, WNOHANG) == 0)
      kill(pid, SIGKILL);  // still our child, so the number is still its own
    else
      pid = 0;
  }
  for (auto& pid : registered)
    if (pid > 0) waitpid(pid, nullptr, 0);
}

// An exception that nobody can catch, because a library threw it in a thread of its own: Gloo's event loop does when a
// peer of the same process is gone before it has answered.
void end_after_uncaught_exception() {
  std::string what = "an exception of an unknown kind";
  try {
    if (std::current_exception() != nullptr) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    what = error_text(error);
  } catch (...) {
  }
  const std::string text =
      std::string(program_name) + ": a thread of a library failed: " + what.substr(0, what.find('\n')) + "\n";
  end_with(text.c_str());
}

// Where one is registered as `from`, or a place is free (0): writes `to` there.
void replace_registered(pid_t from, pid_t to) {
  for (auto& place : registered)
    if (pid_t found = from; place.compare_exchange_strong(found, to)) return;
}

}  // namespace

void handle_interrupts(const std::string& program) {
  std::strncpy(program_name, program.c_str(), sizeof program_name - 1);
  std::set_terminate(end_after_uncaught_exception);
  end_on_signals(program + ": interrupted; every rank was ended and nothing was left behind", end_ranks);
}

void end_program(const std::string& sentence) {
  end_with((std::string(program_name) + ": " + sentence + "\n").c_str());
}

void register_rank_process(pid_t pid) { replace_registered(0, pid); }
void forget_rank_process(pid_t pid) { replace_registered(pid, 0); }

void leave_interrupts_to_the_parent() {
  for (auto& place : registered) place = 0;
  ignore_end_signals();
  std::set_terminate(std::abort);  // the parent sees the signal and says so
}

}  // namespace muonwalk::sim
