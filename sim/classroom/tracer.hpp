#pragma once

#include <string>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/reports.hpp"
#include "sim/replay/run_trace.hpp"
#include "src/io/file_beside.hpp"

namespace muonwalk::sim {

/// Gathers what the ranks of a traced run recorded, and writes the traces that were asked for.
/// It lives in the parent.
class Tracer {
 public:
  /// Of a lesson, as it was asked for on the command line.
  Tracer(const LessonInfo& info, const Options& options);

  /// The ranks are about to start: time 0.
  void begin() { run_.began_ns = clock_(); }
  /// A step has ended on all ranks.
  void step(const StepReports& reports);
  /// What the run trains.
  void trains(const std::vector<TrainedMatrix>& parameters) { run_.parameters = parameters; }

  /// Writes the files that were asked for, which take their places with all others of the run. Throws UsageError.
  void write(bool ok, FilesBeside& files);

  /// What was gathered so far.
  const RunTrace& run() const { return run_; }

 private:
  void keep_what_was_asked_for();

  ClockNs clock_;
  std::string file_;
  std::string folder_;
  int room_;
  RunTrace run_;
};

/// Throws UsageError when a trace can't be written where it should be; makes the folder of --trace-per-rank if there is
/// none. To be called before any rank is started.
void require_trace_writable(const Options& options);

}  // namespace muonwalk::sim
