#include <algorithm>
#include <limits>

#include "sim/analyser/trace_summary.hpp"

namespace muonwalk::sim {
namespace {

// Gloo's collectives are operators, too, and so are the calls that start a collective: they compute nothing.
bool computes(const TraceFile& file, const TraceEvent& event) {
  const std::string& name = file.name_of(event);
  return name.rfind("c10d::", 0) != 0 && name != "record_param_comms";
}

}  // namespace

TimeBasis time_basis(const TraceFile& file, int rank) {
  bool collectives = false;
  for (const TraceEvent& event : file.events) {
    if (file.rank_of(event) != rank) continue;
    if (event.event_class == EventClass::computation || event.event_class == EventClass::communication ||
        event.event_class == EventClass::copy)
      return file.dialect == TraceDialect::muonwalk ? TimeBasis::recorded : TimeBasis::device;
    collectives = collectives || event.event_class == EventClass::host_collective;
  }
  return collectives ? TimeBasis::host : TimeBasis::none;
}

CountedAs counted_as(const TraceFile& file, const TraceEvent& event, TimeBasis basis) {
  if (basis == TimeBasis::none) return CountedAs::nothing;
  if (event.event_class == communication_class(basis)) return CountedAs::communication;
  if (event.event_class == EventClass::copy) return CountedAs::copy;
  if (basis != TimeBasis::host)
    return event.event_class == EventClass::computation ? CountedAs::computation : CountedAs::nothing;
  return event.event_class == EventClass::host_operator && computes(file, event) ? CountedAs::computation
                                                                                 : CountedAs::nothing;
}

EventClass communication_class(TimeBasis basis) {
  return basis == TimeBasis::host ? EventClass::host_collective : EventClass::communication;
}

RankTimes rank_times(const TraceFile& file, int rank) {
  RankTimes times;
  times.basis = time_basis(file, rank);
  if (times.basis == TimeBasis::none) return times;
  std::vector<Interval> computation, communication, copies;
  times.begin_ns = std::numeric_limits<std::int64_t>::max();
  times.end_ns = std::numeric_limits<std::int64_t>::min();
  for (const TraceEvent& event : file.events) {
    if (file.rank_of(event) != rank) continue;
    const Interval interval{event.begin_ns, event.end_ns()};
    switch (counted_as(file, event, times.basis)) {
      case CountedAs::computation:
        computation.push_back(interval);
        break;
      case CountedAs::communication:
        communication.push_back(interval);
        break;
      case CountedAs::copy:
        copies.push_back(interval);
        break;
      case CountedAs::nothing:
        continue;
    }
    times.begin_ns = std::min(times.begin_ns, event.begin_ns);
    times.end_ns = std::max(times.end_ns, event.end_ns());
  }
  times.computation = IntervalSet(std::move(computation));
  times.communication = IntervalSet(std::move(communication));
  times.copies = IntervalSet(std::move(copies));
  return times;
}

}  // namespace muonwalk::sim
