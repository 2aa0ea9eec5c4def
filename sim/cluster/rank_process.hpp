#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/cluster/record_stream.hpp"

namespace muonwalk::sim {

/// The parent's end of one rank that is a process: its records as they come through the pipe, and how it ended. It owns
/// both: at its end the process is killed, unless it has ended before, and the pipe is closed.
class RankProcess {
 public:
  /// A process that was just forked, and registered to end with the program (interrupt.hpp); it is forgotten there in
  /// the moment in which it is waited for.
  RankProcess(pid_t pid, int pipe) : pid_(pid), pipe_(pipe), ended_(pid <= 0) {}
  /// Hands over both; what was moved from owns nothing.
  /// @{
  RankProcess(RankProcess&& other) noexcept { *this = std::move(other); }
  RankProcess& operator=(RankProcess&& other) noexcept;
  /// @}
  ~RankProcess() { end(); }

  /// In a process that was forked later, and whose child it is not: closes the pipe and leaves the process alone.
  void leave_to_parent();

  /// Its process id.
  pid_t pid() const { return pid_; }
  /// The read end of the pipe; −1 once the rank has closed it.
  int pipe() const { return pipe_; }

  /// Reads what is there without waiting, and sorts it into finished steps and a failure.
  void read_records();
  /// Asks the system how the process is, without waiting.
  void observe();
  /// Kills the process, waits for its end, and closes the pipe.
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
  bool lost() const { return ended_ || failure_; }
  /// The exception that ended the rank's step; nothing as long as it did not say so.
  const std::optional<Failed>& failure() const { return failure_; }
  /// True when it failed because of what happened to another rank.
  bool lost_peer() const { return failure_ && failure_->kind == Failed::Kind::peer_lost; }
  /// The wait status of an ended process, or kUnknownStatus.
  int status() const { return status_; }
  /// What stands for the status of a process that ended, but that somebody else has waited for: the system tells it
  /// once. It is neither an exit nor a signal to the macros that take a status apart.
  static constexpr int kUnknownStatus = -1;
  /// The signal that has stopped it; 0 while it is not stopped.
  int stop_signal() const { return stop_signal_; }
  /// Seconds of processor time the process has used; 0 when that can't be told.
  double cpu_seconds() const;
  /// True when its main thread could go on at this moment if it had a processor, or waits for a disk: on a busy machine
  /// that may last without a second of processor time. False where there is no /proc to tell.
  bool wants_processor() const;

 private:
  void sort_in(Record record);
  void ended_with(int status);
  pid_t pid_ = -1;
  int pipe_ = -1;
  RecordReader reader_;
  std::vector<std::vector<Record>> steps_;
  std::vector<Record> open_step_;
  bool ended_ = true;  // or there is none, or it is not this object's to end
  std::optional<Failed> failure_;
  int status_ = 0;
  int stop_signal_ = 0;
};

/// "9 (SIGKILL)".
std::string signal_text(int signal);

}  // namespace muonwalk::sim
