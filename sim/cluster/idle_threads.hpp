#pragma once

#include "sim/cluster/options.hpp"

namespace muonwalk::sim {

/// Where ranks that are processes have more OpenMP threads together than the machine has cores, starts the program anew
/// with OMP_WAIT_POLICY=passive, unless the reader has set that variable: threads that wait for each other then sleep.
/// Otherwise they spin and keep the core from the thread they wait for, which makes a run many times slower. OpenMP
/// reads the variable when a program is loaded and never again; hence the new start. To be called before anything is
/// printed or started.
void let_idle_threads_sleep(const Options& options, char** argv);

}  // namespace muonwalk::sim
