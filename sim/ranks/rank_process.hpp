#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "sim/ranks/report_stream.hpp"
#include "sim/ranks/watched_rank.hpp"
#include "src/io/open_file.hpp"

namespace muonwalk::sim {

/// A rank that is a child of this process: its records come through a pipe. It owns both: at its end the process is
/// killed, unless it has ended before, and the pipe is closed.
class RankProcess : public WatchedRank {
 public:
  /// A process that was just forked, and registered to end with the program (interrupt.hpp); it is forgotten there in
  /// the moment in which it is waited for.
  RankProcess(pid_t pid, int pipe) : pid_(pid), pipe_(pipe) { ended_ = pid <= 0; }
  ~RankProcess() override { end(); }

  /// Its process id.
  pid_t pid() const { return pid_; }
  /// The read end of the pipe; −1 once the rank has closed it.
  int file() const override { return pipe_.descriptor(); }
  void take_news() override;
  /// Kills the process, waits for its end, and closes the pipe.
  void end() override;
  void leave_to_parent() override;
  bool wait_for_end(double seconds) override;
  double cpu_seconds() const override;
  bool wants_processor() const override;

  /// Asks the system how the process is, without waiting.
  void observe();

 private:
  void read_records();
  void ended_with(int status);
  pid_t pid_ = -1;
  OpenFile pipe_;
  ReportReader reader_;
};

/// Both ends of a pipe.
struct Pipe {
  OpenFile read_end;   ///< bytes come out here
  OpenFile write_end;  ///< bytes go in here
};

/// A pipe to a rank, closed in programs that a rank starts. Throws RunError where no more files may be open.
Pipe open_pipe();

/// Throws RunError when this process has threads. A process that is forked from one with threads has the memory of them
/// all and only one of them: locks that the others hold are held forever, and OpenMP waits for a missing team.
void require_no_other_threads();

/// Forks a process for rank `rank`, which dies with this one. In the parent, returns it. In the child, calls `first`
/// and returns null; `records` is the end of the pipe that the rank writes its records to, and the rank ends at once
/// where `first` returns false. Throws RunError when the system allows no process.
std::unique_ptr<RankProcess> fork_rank(int rank, int& reports, const std::function<bool()>& first = nullptr);

/// "9 (SIGKILL)".
std::string signal_text(int signal);

}  // namespace muonwalk::sim
