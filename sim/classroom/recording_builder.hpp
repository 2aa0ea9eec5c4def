#pragma once

#include <string>
#include <vector>

#include "sim/ranks/options.hpp"
#include "sim/ranks/reports.hpp"
#include "sim/replay/recording.hpp"

namespace muonwalk::sim {

/// Makes a Recording out of what the ranks tell, step by step, and of the lines that the lesson prints. It lives in the
/// parent; ranks only send their records there.
class RecordingBuilder {
 public:
  /// The recording of this lesson, with the grid and precision that were asked for.
  RecordingBuilder(const LessonInfo& info, const Options& options);

  /// The first line of the output, which is recorded also where nothing of it is printed.
  void heading(const std::string& printed);

  /// A line that was printed; its colours are dropped. It belongs to the last step so far, or to none.
  void line(const std::string& printed);

  /// A step has ended on all ranks; the lines that follow are its own.
  void step(const std::string& title, const StepReports& reports);

  /// The step has printed all of its own lines.
  void step_printed();

  /// The lesson has ended: the lines after its last step are no longer part of that step.
  void finish(bool ok);

  /// What was recorded so far.
  const Recording& recording() const { return recording_; }

 private:
  RecordedBlock block(const Shown& shown);
  int tensor(const std::string& name);
  int coloured(int tensor, int wanted, int step);
  int coloured(int tensor, bool flat);

  Recording recording_;
  std::size_t own_lines_ = 0;  // of the last step: those that it printed itself
  int matrices_ = 0;           // tensors that have a colour so far
  int runs_ = 0;
};

/// A part of a quiet step, or all of it, with what the ranks told in it.
struct PhaseRecords {
  std::string title;    ///< "optimizer step 1: TP gather"
  StepReports reports;  ///< without the phase's end, but with what each rank moved in it
};

/// A step that prints nothing, phase by phase, where the ranks named the phases of their work (Rank::phase). A phase
/// that comes several times, once per matrix, is one. Without phases the step is one part.
std::vector<PhaseRecords> phases_of(const std::string& title, StepReports reports);

}  // namespace muonwalk::sim
