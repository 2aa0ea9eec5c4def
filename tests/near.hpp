#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <ostream>

/// A number that another one must come near to: `CHECK(computed == near(expected))`. The two may differ by `relative`
/// of the expected one and by nothing more, so near(0) is 0 alone, and a number of the size of 1e-12 is compared as
/// closely as one of the size of 1. NaN is near to nothing.
class near {
 public:
  explicit near(double expected, double relative = 1e-9) : expected_(expected), relative_(relative) {}

  friend bool operator==(double computed, const near& wanted) {
    wanted.computed_ = computed;
    return computed == wanted.expected_ ||
           (std::isfinite(wanted.expected_) &&
            std::abs(computed - wanted.expected_) <= wanted.relative_ * std::abs(wanted.expected_));
  }
  friend bool operator!=(double computed, const near& wanted) { return !(computed == wanted); }

  /// What a check that failed prints: "0.5 ± 1e-09 of it, and it is off by 0.012 of it".
  friend std::ostream& operator<<(std::ostream& out, const near& wanted) {
    out << wanted.expected_ << " ± " << wanted.relative_ << " of it";
    if (wanted.expected_ != 0)
      out << ", and it is off by " << std::abs(wanted.computed_ / wanted.expected_ - 1) << " of it";
    return out;
  }

 private:
  double expected_, relative_;
  mutable double computed_ = 0;  // what it was last compared with, for the message
};
