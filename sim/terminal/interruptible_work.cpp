#include "sim/terminal/interruptible_work.hpp"

#include <signal.h>

#include <atomic>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

std::atomic<bool> works_can_be_interrupted{false};
std::atomic<bool> asked{false};  // lock-free, so that a signal may set it
static_assert(std::atomic<bool>::is_always_lock_free);
int works = 0;               // that live; all of them on the thread that runs the cell
struct sigaction before {};  // the outermost of them

void ask(int) { asked = true; }

}  // namespace

void let_work_be_interrupted() {
  works_can_be_interrupted = true;
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL) signal(SIGINT, SIG_IGN);
}

extern "C" void muonwalk_let_work_be_interrupted() { let_work_be_interrupted(); }

InterruptibleWork::InterruptibleWork() {
  if (!works_can_be_interrupted || works++ > 0) return;
  asked = false;
  struct sigaction action {};
  action.sa_handler = ask;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &before);
}

InterruptibleWork::~InterruptibleWork() {
  if (works == 0 || --works > 0) return;
  sigaction(SIGINT, &before, nullptr);
  asked = false;
}

bool InterruptibleWork::asked_to_end() { return asked; }

void InterruptibleWork::end_if_asked() {
  if (asked) throw RunError("interrupted: the ranks stopped in the middle of their work; begin the lesson again");
}

}  // namespace muonwalk::sim
