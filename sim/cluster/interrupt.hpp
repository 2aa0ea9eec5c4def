#pragma once

#include <sys/types.h>

#include <string>

namespace muonwalk::sim {

/// From here on Ctrl-C (and SIGTERM and SIGHUP) kills every registered rank, waits for their end, says so on standard
/// error in the name of `program`, and exits with 3. An exception that a library throws in a thread of its own, where
/// nobody can catch it, ends the program in the same way, with what it says. To be called by the main thread.
void handle_interrupts(const std::string& program);

/// Ends the program as an interrupt does, with `sentence` in its place; from any thread.
[[noreturn]] void end_program(const std::string& sentence);

/// Adds or removes the process of a rank that has to end with the program.
/// @{
void register_rank_process(pid_t pid);
void forget_rank_process(pid_t pid);
/// @}

/// In the process of a rank: Ctrl-C reaches it too, but ending the run is the parent's work.
void leave_interrupts_to_the_parent();

/// While it lives, interrupts wait: around a fork, or around a write that has to be whole. For the main thread.
class InterruptHold {
 public:
  /// The hold begins here and ends with the object.
  InterruptHold();
  ~InterruptHold();
  InterruptHold(const InterruptHold&) = delete;
  InterruptHold& operator=(const InterruptHold&) = delete;

 private:
  unsigned char previous_[128];  // a sigset_t
};

}  // namespace muonwalk::sim
