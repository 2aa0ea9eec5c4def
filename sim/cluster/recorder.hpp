#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/recording/recording.hpp"
#include "sim/world/options.hpp"
#include "sim/world/records.hpp"

namespace muonwalk::sim {

/// Makes a Recording out of what the ranks say, step by step, and of the lines that the lesson prints. It lives in the
/// process that prints; ranks only send their records there.
class Recorder {
 public:
  /// Of a lesson, as it was asked for on the command line.
  Recorder(const LessonInfo& info, const Options& options);

  /// The first line of the output, also where nothing of it is printed.
  void heading(const std::string& printed);

  /// A line that was printed, without its colours. It belongs to the last step so far, or stands before all of them.
  void line(const std::string& printed);

  /// A step that has ended on all ranks; the lines that follow are its own.
  void step(const std::string& title, const StepRecords& records);

  /// The step has printed all of its own lines.
  void step_printed();

  /// A step that prints nothing. Where the ranks named the phases of their work (Rank::phase), each phase is recorded
  /// as a step of its own; a phase that comes several times, once per matrix, is recorded as one.
  void quiet_step(const std::string& title, const StepRecords& records);

  /// All so far. Once the lesson has ended, the lines after its last step are no longer part of that step.
  void finish(bool ok);
  /// What was recorded so far.
  const Recording& recording() const { return recording_; }

  /// A picture that the lesson draws of itself, besides the strips of its steps.
  void picture(const std::string& name, const std::string& svg) { pictures_.emplace_back(name, svg); }

  /// Writes the files that were asked for; every file is written whole or not at all. Throws RunError with a sentence.
  void write() const;

 private:
  void add_step(const std::string& title, const std::vector<std::vector<const Record*>>& records);
  RecordedBlock block(const Shown& shown);
  int tensor(const std::string& name);
  int coloured(int tensor, int wanted, int step);
  int coloured(int tensor, bool flat);

  Recording recording_;
  std::vector<std::pair<std::string, std::string>> pictures_;
  std::string record_path_;
  std::string svg_path_;
  std::size_t own_lines_ = 0;  // of the last step: those that it printed itself
  int matrices_ = 0;           // tensors that have a colour so far
  int runs_ = 0;
  Range phases_;  // the first and the last step that are the phases of one piece of work; empty where there are none
};

/// Throws UsageError when a file of a recording can't be written where it should be; makes the folder of pictures if
/// there is none. To be called before any rank is started.
void require_writable(const Options& options);

}  // namespace muonwalk::sim
