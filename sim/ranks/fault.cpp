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
  if (fault.kind == Fault::Kind::kill) kill(getpid(), SIGKILL);
  if (fault.kind == Fault::Kind::exit) _exit(0);
  if (fault.kind == Fault::Kind::raise) throw RunError("it threw because --fault asked for it");
  if (fault.kind == Fault::Kind::stop) kill(getpid(), SIGSTOP);
  while (fault.kind == Fault::Kind::hang) pause();
  for (volatile std::uint64_t turns = 0; fault.kind == Fault::Kind::spin;) turns = turns + 1;
}

}  // namespace muonwalk::sim
