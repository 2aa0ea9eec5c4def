#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "src/numerics/interval_set.hpp"
#include "tools/trace/event.hpp"

namespace muonwalk::sim {

/// From the start of the first to the end of the last of the events for which `which` holds; empty, [0, 0), where
/// there are none.
template <class Events, class Which>
Interval extent(const Events& events, const Which& which) {
  Interval all{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  for (const TraceEvent& event : events)
    if (which(event)) all = {std::min(all.begin, event.begin_ns), std::max(all.end, event.end_ns())};
  return all.end < all.begin ? Interval() : all;
}

/// What the times of a rank are made from.
enum class TimeBasis {
  device,    ///< Kernels.
  host,      ///< No device: operators on the CPU compute, Gloo communicates.
  recorded,  ///< What a lesson recorded.
  none       ///< Neither kernels nor collectives on the CPU: no time can be told.
};

/// What the times of a rank are made from, by the events that it has.
TimeBasis time_basis(const TraceFile& file, int rank);

/// The time that an event counts into.
enum class CountedAs { computation, communication, copy, nothing };

/// What an event of a rank counts as, by the basis of that rank's times.
CountedAs counted_as(const TraceFile& file, const TraceEvent& event, TimeBasis basis);

/// The moments in which a rank computes, communicates, copies; where nothing is known, all are empty.
struct RankTimes {
  TimeBasis basis = TimeBasis::none;  ///< What the times are made from.
  /// When the rank did each.
  /// @{
  IntervalSet computation, communication, copies;
  /// @}
  Interval span;  ///< From the first to the last of these events.
};

/// The times of one rank (an index into TraceFile::ranks).
RankTimes rank_times(const TraceFile& file, int rank);

/// The class of events that the communication of a rank consists of: kernels, or where there is no device, host
/// collectives.
EventClass communication_class(TimeBasis basis);

}  // namespace muonwalk::sim
