#include <signal.h>
#include <unistd.h>

#include "sim/ranks/options.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {

void have_fault(const Fault& fault, int rank, int step) {
  if (fault.rank != rank) return;
  if (fault.kind == Fault::Kind::never_connect) {
    while (step == 0) pause();  // whatever step was named: later than this it would be connected
    return;
  }
  if (fault.step != step) return;
  switch (fault.kind) {
    case Fault::Kind::kill:
      kill(getpid(), SIGKILL);
      break;
    case Fault::Kind::exit:
      _exit(0);
    case Fault::Kind::raise:
      throw RunError("it threw because --fault asked for it");
    case Fault::Kind::stop:
      kill(getpid(), SIGSTOP);
      break;
    case Fault::Kind::hang:
      while (true) pause();
    case Fault::Kind::spin:
      for (volatile std::uint64_t turns = 0;; turns = turns + 1) {
      }
    case Fault::Kind::never_connect:
    case Fault::Kind::none:
      break;
  }
}

}  // namespace muonwalk::sim
