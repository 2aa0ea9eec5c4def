#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/analyser/event.hpp"

namespace muonwalk::sim {

/// A stretch of time [begin, end), in nanoseconds.
struct Interval {
  std::int64_t begin = 0;  ///< the first moment
  std::int64_t end = 0;    ///< one past the last

  /// Both ends are equal.
  friend bool operator==(const Interval& a, const Interval& b) { return a.begin == b.begin && a.end == b.end; }
};

/// A set of moments: disjoint, non-empty intervals in ascending order, none touching the next. What two streams do at
/// the same time is in it once, which is what tells a union from a sum.
class IntervalSet {
 public:
  IntervalSet() = default;
  /// The union of any intervals, in any order; empty ones add nothing. Takes n log n.
  explicit IntervalSet(std::vector<Interval> intervals);

  /// In ascending order.
  const std::vector<Interval>& intervals() const { return intervals_; }
  /// No moment is in it.
  bool empty() const { return intervals_.empty(); }
  /// How long it is in all, in nanoseconds.
  std::int64_t length() const;

 private:
  std::vector<Interval> intervals_;
};

/// The moments that are in one or in both.
IntervalSet united(const IntervalSet& a, const IntervalSet& b);

/// The moments that are in both.
IntervalSet intersected(const IntervalSet& a, const IntervalSet& b);

/// From the start of the first to the end of the last of the events for which `which` holds; empty, [0, 0), where
/// there are none.
template <class Which>
Interval extent(const std::vector<TraceEvent>& events, const Which& which) {
  Interval all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const TraceEvent& event : events)
    if (which(event)) all = {std::min(all.begin, event.begin_ns), std::max(all.end, event.end_ns())};
  return all.end < all.begin ? Interval() : all;
}

/// What the times of a rank are made from.
enum class TimeBasis {
  device,    ///< kernels
  host,      ///< no device: operators on the CPU compute, Gloo communicates
  recorded,  ///< what a lesson recorded
  none       ///< neither kernels nor collectives on the CPU: no time can be told
};

/// What the times of a rank are made from, by the events that it has.
TimeBasis time_basis(const TraceFile& file, int rank);

/// The time that an event counts into.
enum class CountedAs { computation, communication, copy, nothing };

/// What an event of a rank counts as, by the basis of that rank's times.
CountedAs counted_as(const TraceFile& file, const TraceEvent& event, TimeBasis basis);

/// The moments in which a rank computes, communicates, copies; where nothing is known, all are empty.
struct RankTimes {
  TimeBasis basis = TimeBasis::none;  ///< what the times are made from
  /// When the rank did each.
  /// @{
  IntervalSet computation, communication, copies;
  /// @}
  Interval span;  ///< from the first to the last of these events
};

/// The times of one rank (an index into TraceFile::ranks).
RankTimes rank_times(const TraceFile& file, int rank);

/// The class of events that the communication of a rank consists of: kernels, or where there is no device, host
/// collectives.
EventClass communication_class(TimeBasis basis);

}  // namespace muonwalk::sim
