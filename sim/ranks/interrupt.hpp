#pragma once

#include <sys/types.h>

#include <string>

#include "sim/terminal/end_on_signals.hpp"

namespace muonwalk::sim {

/// From here on Ctrl-C (and SIGTERM, SIGHUP and SIGQUIT) kills every registered rank, waits for their end, says so on
/// standard error in the name of `program`, and exits with 3 (end_on_signals). To be called by the main thread.
void handle_interrupts(const std::string& program);

/// The program that handle_interrupts was called for; empty where it was not, as in a notebook.
const std::string& interrupted_program();

/// Adds or removes the process of a rank that has to end with the program.
/// @{
void register_rank_process(pid_t pid);
void forget_rank_process(pid_t pid);
/// @}

/// In the process of a rank: Ctrl-C reaches it too, but ending the run is the parent's work.
void leave_interrupts_to_the_parent();

}  // namespace muonwalk::sim
