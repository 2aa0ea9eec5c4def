#include "sim/ranks/interrupt.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include "sim/ranks/options.hpp"
#include "src/errors.hpp"
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

struct StopRequest::Shared {
  std::atomic<int> asked{0};
  std::atomic<int> last_step{0};      // 0: the run goes on
  std::atomic<int> decided_until{0};  // written after last_step: whoever sees a step here sees what was decided in it
};
static_assert(std::atomic<int>::is_always_lock_free, "several processes and the handler of a signal share them");

StopRequest::StopRequest() {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw RunError("the memory in which ranks are asked to stop could not be mapped");
  shared_ = new (memory) Shared;
}

StopRequest::~StopRequest() { munmap(shared_, sizeof(Shared)); }

std::atomic<int>& StopRequest::asked() { return shared_->asked; }

void StopRequest::decide(int step) {
  if (has_decided(step)) return;  // a second time in a step would be too late: others may have left it
  if (shared_->asked != 0 && shared_->last_step == 0) shared_->last_step = step;
  shared_->decided_until.store(step, std::memory_order_release);
}

bool StopRequest::has_decided(int step) const { return shared_->decided_until.load(std::memory_order_acquire) >= step; }

bool StopRequest::stops_after(int step) const {
  const int last = shared_->last_step;
  return last != 0 && last <= step;
}

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
