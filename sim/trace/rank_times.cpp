#include <algorithm>
#include <limits>

#include "sim/trace/trace_summary.hpp"

namespace muonwalk::sim {
namespace {

// Gloo's collectives are operators, too, and so are the calls that start a collective: they compute nothing.
bool computes(const TraceFile& file, const TraceEvent& event) {
  const std::string& name = file.name_of(event);
  return name.rfind("c10d::", 0) != 0 && name != "record_param_comms";
}

TimeBasis basis_of(const TraceFile& file, int rank) {
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

}  // namespace

EventClass communication_class(TimeBasis basis) {
  return basis == TimeBasis::host ? EventClass::host_collective : EventClass::communication;
}

RankTimes rank_times(const TraceFile& file, int rank) {
  RankTimes times;
  times.basis = basis_of(file, rank);
  if (times.basis == TimeBasis::none) return times;
  const bool host = times.basis == TimeBasis::host;
  std::vector<Interval> computation, communication, copies;
  times.begin_ns = std::numeric_limits<std::int64_t>::max();
  times.end_ns = std::numeric_limits<std::int64_t>::min();
  for (const TraceEvent& event : file.events) {
    if (file.rank_of(event) != rank) continue;
    std::vector<Interval>* into = nullptr;
    if (event.event_class == communication_class(times.basis))
      into = &communication;
    else if (event.event_class == (host ? EventClass::host_operator : EventClass::computation))
      into = host && !computes(file, event) ? nullptr : &computation;
    else if (event.event_class == EventClass::copy)
      into = &copies;
    if (into == nullptr) continue;
    into->push_back({event.begin_ns, event.end_ns()});
    times.begin_ns = std::min(times.begin_ns, event.begin_ns);
    times.end_ns = std::max(times.end_ns, event.end_ns());
  }
  times.computation = IntervalSet(std::move(computation));
  times.communication = IntervalSet(std::move(communication));
  times.copies = IntervalSet(std::move(copies));
  return times;
}

}  // namespace muonwalk::sim
