#pragma once

#include <unistd.h>

#include <chrono>
#include <string>

namespace muonwalk::sim {

/// "AdamW: step 37 of 120 · 12.5 steps/s · 7 s left", where the last `timed` of the steps done took so many seconds.
/// Without rate and time where none of them was timed.
std::string progress_text(const std::string& what, int done, int all, int timed, double seconds);

/// Whether lines of progress are shown from here on. A program with --verbose 0 wants none.
void show_progress(bool shown);

/// Clears the line that is shown, if there is one, so that a sentence can have its place; ProgressLine::at then shows
/// it again, below. For whoever prints on the same terminal, and for handlers of signals.
void clear_progress_line();

/// A line on a terminal that says how far a long run is, in its place again and again, at most ten times a second, and
/// that is gone when it ends. Where standard error is not a terminal, nothing is written. One at a time is shown.
class ProgressLine {
 public:
  /// Of `all` steps of something. `file` is for tests.
  ProgressLine(std::string what, int all, int file = STDERR_FILENO);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// So many of them are done. With all of them the line is cleared.
  void at(int done);

 private:
  void end();

  std::string what_;
  int all_;
  int file_;
  bool on_terminal_;
  int first_ = -1;  // done when `at` was called first
  bool shown_ = false;
  std::chrono::steady_clock::time_point began_, last_;
};

}  // namespace muonwalk::sim
