#include "sim/ranks/interrupt.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <string>

#include "sim/ranks/options.hpp"
#include "src/io/unfinished.hpp"

namespace muonwalk::sim {
namespace {

// A handler may touch little more than this: fixed memory, kill and waitpid.
std::atomic<pid_t> registered[kMostRanks];

std::string name_of_program;  // for sentences that are put together beforehand

void end_ranks() {
  for (const auto& pid : registered)
    if (pid > 0 && waitpid(pid, nullptr, WNOHANG) == 0)
      kill(pid, SIGKILL);  // still our child, so the number is still its own
  for (const auto& pid : registered) {
    if (pid <= 0) continue;
    waitpid(pid, nullptr, 0);
    remove_unfinished_of(pid);
  }
}

// Where one is registered as `from`, or a place is free (0): writes `to` there.
void replace_registered(pid_t from, pid_t to) {
  for (auto& place : registered)
    if (pid_t found = from; place.compare_exchange_strong(found, to)) return;
}

}  // namespace

void handle_interrupts(const std::string& program) {
  name_of_program = program;
  end_on_signals(program + ": interrupted; every rank was ended and nothing was left behind", end_ranks);
}

const std::string& interrupted_program() { return name_of_program; }

void register_rank_process(pid_t pid) { replace_registered(0, pid); }
void forget_rank_process(pid_t pid) { replace_registered(pid, 0); }

void leave_interrupts_to_the_parent() {
  for (auto& place : registered) place = 0;
  ignore_end_signals();
  std::set_terminate(std::abort);  // without a word: the parent sees the signal and says so
}

}  // namespace muonwalk::sim
