#pragma once

#include <functional>
#include <string>

#include "sim/classroom/comparison.hpp"
#include "sim/terminal/terminal.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::sim {

/// What a lesson has compared so far. It lives in the parent, and every check says how it went.
class LessonChecks {
 public:
  /// The checks compare all ranks of this grid, which has to live as long; each line of theirs is handed to `print`.
  LessonChecks(const Grid& grid, std::function<void(const std::string& line)> print)
      : grid_(grid), print_(std::move(print)) {}

  /// What the ranks hold was compared with the reference.
  void check(const std::string& what, const Comparison& comparison);
  /// The ranks were compared in one of many steps: nothing is printed but the first difference, at once.
  void quiet_check(const std::string& what, const Comparison& comparison);
  /// Prints one line for all quiet checks since the last such line; it is a check that fails where there were none.
  void sum_up(const std::string& what);
  /// Compares numbers, by their names. Where there is nothing to compare with, the check fails.
  void numbers(const std::string& what, const NamedNumbers& read, const NamedNumbers& expected);
  /// A check that prints lines of its own has found a difference.
  void fail() { ++failed_; }

  /// All checks have held so far.
  bool all_equal() const { return failed_ == 0; }

 private:
  void print_result(const std::string& what, const Comparison& comparison);
  void print_line(const std::string& what, const std::string& found, bool good);

  const Grid& grid_;
  std::function<void(const std::string&)> print_;
  Paint paint_;
  int failed_ = 0;
  int quiet_ = 0;         // quiet checks since the last sum_up
  int failed_quiet_ = 0;  // those of them that found a difference
  Comparison of_quiet_;   // all quiet checks together; the first difference is that of the first one
};

}  // namespace muonwalk::sim
