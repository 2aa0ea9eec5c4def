#pragma once

#include <time.h>

#include <string>

#include "sim/ranks/progress.hpp"

namespace muonwalk::sim {

/// A sentence about one of the ranks that ends the program (end_with). All of it but the rank's number is put together
/// beforehand, so that a signal's handler can say it.
class LastWords {
 public:
  /// The sentence is "PROGRAM: rank R " and then `what_it_does`.
  LastWords(const std::string& program, const std::string& what_it_does);
  /// Says it of this rank.
  [[noreturn]] void say_of(int rank) const;

 private:
  char before_[128];
  char after_[384];
};

/// While one lives, a rank that takes turns on this thread may compute for so long without a sign of life (a call, a
/// phase, a step): one that does so for longer ends the program, with a sentence that names it. A program that nobody
/// has named (handle_interrupts), above all a notebook's kernel, has no limit.
class ComputeLimit {
 public:
  /// `seconds` of the thread's own processor time, in step `title`.
  ComputeLimit(const Progress& progress, const std::string& title, double seconds);
  ~ComputeLimit();
  ComputeLimit(const ComputeLimit&) = delete;
  ComputeLimit& operator=(const ComputeLimit&) = delete;

 private:
  timer_t timer_{};
  bool set_ = false;
};

/// What a rank did that only computed, after its name.
std::string endless_work_text(const std::string& step, double seconds);

}  // namespace muonwalk::sim
