#pragma once

#include <string>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/reports.hpp"
#include "sim/replay/run_trace.hpp"

namespace muonwalk::sim {

/// Gathers what the ranks of a traced run recorded, and writes the trace that was asked for.
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

  /// Writes the file that was asked for, whole or not at all. Throws RunError with a sentence.
  void write(bool ok);

  /// What was gathered so far.
  const RunTrace& run() const { return run_; }

 private:
  void keep_what_was_asked_for();

  ClockNs clock_;
  std::string file_;
  int room_;
  RunTrace run_;
};

}  // namespace muonwalk::sim
