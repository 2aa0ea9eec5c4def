#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/reports.hpp"

namespace muonwalk::sim {

/// The parent's end of one rank: what it has told so far, how its process is, and how to end it. Where that
/// process lives is the business of those who derive from this.
class WatchedRank {
 public:
  virtual ~WatchedRank() = default;

  /// The descriptor that has something to read when there is news of the rank; −1 once nothing more can come.
  virtual int file() const = 0;
  /// Takes what has come, without waiting: how the process is, and what the rank has told.
  virtual void take_news() = 0;
  /// Ends the rank's process, whatever it does, and hears no more of it.
  virtual void end() = 0;
  /// In a process that was forked later: closes what it has of the rank, and leaves the rank's process alone.
  virtual void leave_to_parent() = 0;
  /// Waits up to `seconds` for the process to end by itself; true when it has.
  virtual bool wait_for_end(double seconds) = 0;
  /// Seconds of processor time that the process has used; 0 when that can't be told.
  virtual double cpu_seconds() const = 0;
  /// True when its main thread could go on at this moment if it had a processor, waits for a disk, or is stopped, by a
  /// signal or by a debugger: that may last without a second of processor time. False where nobody can tell.
  virtual bool wants_processor() const = 0;

  /// Says on which host the process is, where that is not a matter of course.
  void lives_on(const std::string& host) { host_ = host; }
  /// The host, or nothing.
  const std::string& host() const { return host_; }
  /// True when there was a sign of life of whoever knows about the process since the last call. False again and again:
  /// what is said of the process has become old.
  virtual bool heard_of() { return true; }
  /// False when its host has not answered lately: it is gone, or cannot be reached.
  virtual bool host_answers() const { return true; }
  /// What became of whoever knew about the process, when nobody does any more: how the process is can't be told then.
  virtual std::string out_of_sight() const { return ""; }

  /// True when the records of step number `step` are complete.
  bool finished(int step) const { return static_cast<int>(steps_.size()) >= step; }
  /// The records of a finished step; they are handed over.
  std::vector<Report> take_step(int step) { return std::move(steps_[static_cast<std::size_t>(step - 1)]); }

  /// What the rank has written to its key store since the last call; handed over.
  std::vector<Posted> take_posted() { return std::exchange(posted_, {}); }

  /// The process is no more.
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

 protected:
  WatchedRank() = default;
  WatchedRank(const WatchedRank&) = delete;
  WatchedRank& operator=(const WatchedRank&) = delete;

  /// Sorts what the rank has told into finished steps and a failure.
  void sort_in(std::vector<Report> reports);

  bool ended_ = true;    ///< true as well where there is no process, or it is not this object's to end
  int status_ = 0;       ///< see status()
  int stop_signal_ = 0;  ///< see stop_signal()

 private:
  std::vector<std::vector<Report>> steps_;
  std::vector<Report> open_step_;
  std::vector<Posted> posted_;
  std::optional<Failed> failure_;
  std::string host_;
};

/// The ranks of a run, in rank order.
using WatchedRanks = std::vector<std::unique_ptr<WatchedRank>>;

}  // namespace muonwalk::sim
