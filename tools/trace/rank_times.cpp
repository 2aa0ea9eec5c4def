#include "tools/trace/rank_times.hpp"

#include <array>
#include <utility>

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
  for (const TraceEvent& event : file.events_of(rank)) {
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
  if (event.event_class == EventClass::transfer) return CountedAs::communication;
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
  const TraceFile::Events events = file.events_of(rank);
  const auto kind_of = [&](const TraceEvent& event) { return counted_as(file, event, times.basis); };
  std::array<std::vector<Interval>, static_cast<std::size_t>(CountedAs::nothing) + 1> intervals;
  for (const TraceEvent& event : events)
    intervals[static_cast<std::size_t>(kind_of(event))].push_back({event.begin_ns, event.end_ns()});
  const auto set_of = [&](CountedAs kind) { return IntervalSet(std::move(intervals[static_cast<std::size_t>(kind)])); };
  times.computation = set_of(CountedAs::computation);
  times.communication = set_of(CountedAs::communication);
  times.copies = set_of(CountedAs::copy);
  times.span = extent(events, [&](const TraceEvent& event) { return kind_of(event) != CountedAs::nothing; });
  return times;
}

}  // namespace muonwalk::sim
