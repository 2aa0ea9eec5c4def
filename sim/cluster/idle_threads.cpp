#include "sim/cluster/idle_threads.hpp"

#include <stdlib.h>
#include <unistd.h>

#include <thread>

namespace muonwalk::sim {

void let_idle_threads_sleep(const Options& options, char** argv) {
  const int threads = options.threads_per_rank();
  const bool crowded =
      threads > 1 && static_cast<unsigned>(threads * options.grid.size()) > std::thread::hardware_concurrency();
  // Ranks that are threads need no help: OpenMP sees all of them, and spins less by itself.
  if (!crowded || options.world != WorldKind::processes || getenv("OMP_WAIT_POLICY") != nullptr) return;
  setenv("OMP_WAIT_POLICY", "passive", 1);
  execv("/proc/self/exe", argv);  // returns only where that is not possible; then it is slow, and right
}

}  // namespace muonwalk::sim
