#include "sim/terminal/interruptible_work.hpp"

#include <signal.h>

#include <atomic>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

std::atomic<bool> works_can_be_interrupted{false};
std::atomic<bool> end_is_asked{false};  // lock-free, so that a signal may set it
static_assert(std::atomic<bool>::is_always_lock_free);
int living_works = 0;                // all on the thread that runs the cell
struct sigaction handler_before {};  // the outermost work

void ask(int) { end_is_asked = true; }

// A kernel's own handler, which ends it. It comes back when this library goes.
struct HandlerOfKernel {
  struct sigaction before = {};
  ~HandlerOfKernel() { sigaction(SIGINT, &before, nullptr); }
};

}  // namespace

extern "C" void muonwalk_let_work_be_interrupted() {
  static HandlerOfKernel kernels;
  if (!works_can_be_interrupted.exchange(true)) sigaction(SIGINT, nullptr, &kernels.before);
  signal(SIGINT, SIG_IGN);
}

InterruptibleWork::InterruptibleWork() {
  if (!works_can_be_interrupted || living_works++ > 0) return;
  end_is_asked = false;
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &handler_before);
}

InterruptibleWork::~InterruptibleWork() {
  if (living_works == 0 || --living_works > 0) return;
  sigaction(SIGINT, &handler_before, nullptr);
  end_is_asked = false;
}

bool InterruptibleWork::asked_to_end() { return end_is_asked; }

void InterruptibleWork::end_if_asked() {
  if (end_is_asked)
    throw RunError("interrupted: the ranks stopped in the middle of their work; begin the lesson again");
}

}  // namespace muonwalk::sim
