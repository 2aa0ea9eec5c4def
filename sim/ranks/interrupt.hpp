#pragma once

#include <sys/types.h>

#include <atomic>
#include <string>

#include "sim/terminal/end_on_signals.hpp"

namespace muonwalk::sim {

/// Whether somebody has asked the run to stop, and after which of its steps it does, in memory that the process that
/// prints and all ranks share since before the fork.
///
/// A request may come at any moment, and each process would see it in another step. So rank 0 alone looks at it, at the
/// beginning of a step, and writes down whether this step is the last one. A rank reads that when it has finished the
/// step, and so it must not finish before rank 0 has written: a call that it can't leave before rank 0 has taken part
/// sees to that, and has_decided finds out where there is none. The parent reads it when it has heard from
/// every rank. What is written for a step never changes, so all of them read the same, however far ahead rank 0 is.
class StopRequest {
 public:
  /// Maps the memory; nobody has asked. To be made before ranks are forked.
  StopRequest();
  ~StopRequest();
  StopRequest(const StopRequest&) = delete;
  StopRequest& operator=(const StopRequest&) = delete;

  /// Becomes 1 when somebody asks. The handler of a signal may set it.
  std::atomic<int>& asked();

  /// By rank 0, at the beginning of step number `step`, which grows from call to call: the run stops after this step
  /// where somebody has asked by now. In steps after that one it changes nothing.
  void decide(int step);

  /// Rank 0 has decided in this step or in a later one.
  bool has_decided(int step) const;

  /// The run stops after this step, or has stopped after an earlier one. To be asked by whoever knows that rank 0 has
  /// decided in every step up to this one that it decides in.
  bool stops_after(int step) const;

 private:
  struct Shared;
  Shared* shared_;
};

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
