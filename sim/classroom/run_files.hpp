#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/classroom/recording_builder.hpp"
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

  /// Writes the files that were asked for, which take their places with all others of the run. Throws UsageError.
  void write(bool ok, FilesBeside& files);

  /// What was gathered so far.
  const RunTrace& run() const { return run_; }

 private:
  void keep_what_was_asked_for();

  ClockNs clock_;
  std::string file_;
  int room_;
  RunTrace run_;
};

/// What a run leaves behind besides its lines. It lives in the parent.
struct RunFiles {
  std::unique_ptr<RecordingBuilder> recording;  ///< `--record`; null without it
  std::unique_ptr<Tracer> tracer;               ///< null where the run is not traced

  RunFiles() = default;
  /// Those that the options ask for.
  RunFiles(const LessonInfo& info, const Options& options);

  /// Writes all of them, to take their places later; `ok` says whether the run's checks held. Throws UsageError.
  void write(const Options& options, bool ok, FilesBeside& files);
};

/// Throws UsageError when a file that was asked for can't be written where it should be; makes the folders for
/// recordings and traces if there are none. To be called before any rank is started.
void require_writable(const Options& options);

/// Throws UsageError when a file of a run is asked for that does not come about, because `option` asks for something
/// in its place.
void require_no_files(const Options& options, const char* option);

}  // namespace muonwalk::sim
