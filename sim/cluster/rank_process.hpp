#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "sim/cluster/record.hpp"

namespace muonwalk::sim {

/// The parent's end of one rank that is a process: its records as they come through the pipe, and how it ended.
class RankProcess {
 public:
  /// A process that was just forked, and registered to end with the program (interrupt.hpp); it is forgotten there in
  /// the moment in which it is waited for.
  RankProcess(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) {}

  /// Its process id.
  pid_t pid() const { return pid_; }
  /// The read end of the pipe; −1 once the rank has closed it.
  int pipe() const { return pipe_; }

  /// Reads what is there without waiting, and sorts it into finished steps and a failure.
  void read_records();
  /// Asks the system how the process is, without waiting.
  void observe();
  /// Kills the process and waits for its end.
  void end();
  /// Waits up to `seconds` for the process to end by itself; true when it has.
  bool wait_for_end(double seconds);

  /// True when the records of step number `step` are complete.
  bool finished(int step) const { return static_cast<int>(steps_.size()) >= step; }
  /// The records of a finished step; they are handed over.
  std::vector<Record> take_step(int step) { return std::move(steps_[static_cast<std::size_t>(step - 1)]); }

  /// The process is no more, and has been waited for.
  bool ended() const { return ended_; }
  /// It is stopped by a signal (stop_signal) and may go on.
  bool stopped() const { return stop_signal_ != 0; }
  /// It has ended, or said that it failed: nothing more is to be expected of it.
  bool lost() const { return ended_ || failed_; }
  /// It said that its step ended with an exception.
  bool failed() const { return failed_; }
  /// The message of an exception that ended the rank's step, and whether it was a UsageError.
  /// @{
  const std::string& failure() const { return failure_; }
  bool refused_input() const { return refused_input_; }
  /// @}
  /// True when the exception was a PeerLostError: what happened to another rank is the cause.
  bool lost_peer() const { return lost_peer_; }
  /// When the rank failed, on the monotonic clock.
  double failed_at() const { return failed_at_; }
  /// The wait status of an ended process.
  int status() const { return status_; }
  /// The signal that has stopped it; 0 while it is not stopped.
  int stop_signal() const { return stop_signal_; }
  /// Seconds of processor time the process has used; 0 when that can't be told.
  double cpu_seconds() const;
  /// True when its main thread could go on at this moment if it had a processor, or waits for a disk: on a busy machine
  /// that may last without a second of processor time. False where there is no /proc to tell.
  bool wants_processor() const;

 private:
  void sort_in(Record record);
  pid_t pid_;
  int pipe_;
  std::vector<std::byte> received_;
  std::vector<std::vector<Record>> steps_;
  std::vector<Record> open_step_;
  bool ended_ = false;
  bool failed_ = false;
  bool refused_input_ = false;
  bool lost_peer_ = false;
  std::string failure_;
  double failed_at_ = 0;
  int status_ = 0;
  int stop_signal_ = 0;
};

/// Seconds on the clock that all processes of the machine share.
double monotonic_seconds();

/// "9 (SIGKILL)".
std::string signal_text(int signal);

}  // namespace muonwalk::sim
