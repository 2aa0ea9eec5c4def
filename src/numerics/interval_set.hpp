#pragma once

#include <cstdint>
#include <vector>

namespace muonwalk::sim {

/// A stretch of time [begin, end), in nanoseconds.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  friend bool operator==(const Interval& a, const Interval& b) { return a.begin == b.begin && a.end == b.end; }
};

/// A set of moments: disjoint, non-empty intervals in ascending order, none touching the next. What two streams do at
/// the same time is in it once, which is what tells a union from a sum.
class IntervalSet {
 public:
  IntervalSet() = default;
  /// The union of any intervals, in any order; empty ones add nothing. Takes n log n.
  explicit IntervalSet(std::vector<Interval> intervals);

  const std::vector<Interval>& intervals() const { return intervals_; }
  bool empty() const { return intervals_.empty(); }
  /// The sum of all lengths, in nanoseconds.
  std::int64_t length() const;

 private:
  std::vector<Interval> intervals_;
};

/// The moments that are in one or in both.
IntervalSet united(const IntervalSet& a, const IntervalSet& b);

/// The moments that are in both.
IntervalSet intersected(const IntervalSet& a, const IntervalSet& b);

}  // namespace muonwalk::sim
