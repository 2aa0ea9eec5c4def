#include "sim/terminal/inherited_signals.hpp"

#include <signal.h>

#include <initializer_list>

namespace muonwalk::sim {

void reset_inherited_signals() {
  static bool done = false;
  if (done) return;  // a second lesson of the same program finds the handlers of the first
  done = true;
  // SIGCHLD ignored would make the system forget how a rank ended. SIGPIPE ignored would turn "nobody reads any more"
  // from a quiet end into an error. SIGTERM ignored has no use that anybody relies on, and would leave only SIGKILL.
  for (int number : {SIGCHLD, SIGPIPE, SIGTERM}) {
    struct sigaction action {};
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace muonwalk::sim
