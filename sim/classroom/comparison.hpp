#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/terminal/terminal.hpp"
#include "src/layout/grid.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk::sim {

/// The values that a rank holds or should hold, as named matrices, without a copy of them: how Lesson::check takes its
/// member, and an exercise's answer is handed over. A flat array is a matrix of one row.
/// @{
std::vector<NamedMatrix> named(Matrix matrix, const std::string& name = "");
std::vector<NamedMatrix> named(Flat values, const std::string& name = "");
inline std::vector<NamedMatrix> named(std::vector<NamedMatrix> matrices) { return matrices; }
/// @}

/// The outcome of comparing what one or more ranks hold with the reference, byte by byte (memcmp).
struct Comparison {
  long long elements = 0;          ///< compared so far
  long long different = 0;         ///< elements that differ
  std::vector<std::string> first;  ///< the first difference, in words; empty when there is none

  /// Nothing differs: no element, shape or name.
  bool equal() const { return first.empty(); }
};

/// Compares what rank `rank` holds with what it should hold and adds the outcome to `comparison`. Equal means: the same
/// names in the same order, the same shapes and the same bytes. The first difference is described with parameter, row
/// and column, both values in decimal and hex, the distance in ULP, and the rank.
void compare(const std::string& rank, const std::vector<NamedMatrix>& held, const std::vector<NamedMatrix>& expected,
             Comparison& comparison);

/// A float as differences show it: nine digits, which tell any two floats apart, and its bits in hex.
std::string float_text(float value);

/// How many float32 values lie between two values, counted along the number line (0 when they are equal, +0 and −0
/// included); −1 when one of them is a NaN.
long long ulp_distance(float a, float b);

/// Whole numbers, each with a name that a sentence can use: "rank 0, all_gather in [0, 1]: calls".
using NamedNumbers = std::map<std::string, std::int64_t>;

/// The first name at which the two differ, as a sentence with both numbers; empty when they are equal.
std::string first_difference(const NamedNumbers& read, const NamedNumbers& expected);

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
