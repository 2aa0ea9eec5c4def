#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/analyser/trace_dialects.hpp"
#include "sim/recording/collective.hpp"

namespace muonwalk::sim {

/// What an event of a trace stands for. One collective call shows up as up to four events, one each of host_operator,
/// host_range, device_range and communication: only the last one is the time that it took.
enum class EventClass : std::uint8_t {
  computation,      ///< a kernel that computes
  communication,    ///< a kernel that communicates; in traces of lessons, a collective
  copy,             ///< a copy or a fill of device memory
  device_range,     ///< a named range, drawn around the kernels that were started in it
  host_collective,  ///< a collective of Gloo, which runs on the CPU
  host_operator,    ///< a call of an operator: where there is a device, the time to start its kernels
  host_range,       ///< a named range of the program; in traces of lessons, a step or a phase
  step,             ///< in traces of lessons: one step of the optimizer
  other,            ///< runtime calls, the profiler's own overhead, Python functions: in no figure
};
/// How many classes there are.
constexpr int kEventClasses = 9;

/// "computation kernel", "host range", …: a class in the words of the output.
const char* event_class_name(EventClass event_class);

/// A complete event. Times are whole nanoseconds, so that sums and differences are exact.
struct TraceEvent {
  std::int64_t begin_ns = 0;     ///< by the trace's clock
  std::int64_t duration_ns = 0;  ///< 0 or more
  std::int32_t name = 0;         ///< index into TraceFile::names
  std::int32_t lane = 0;         ///< index into TraceFile::lanes
  std::int32_t call = -1;        ///< index into TraceFile::calls; −1: no collective, or one without arguments
  EventClass event_class = EventClass::other;  ///< what it stands for

  /// When it ended, by the trace's clock.
  std::int64_t end_ns() const { return begin_ns + duration_ns; }
};

/// What a trace says of one call of a collective. −1 and "" stand for what it does not say.
struct CollectiveCall {
  Collective collective = Collective::other;  ///< which one
  std::int32_t group_size = 0;                ///< ranks in its group
  std::int32_t type = -1;                     ///< index into TraceFile::names: "float32"
  std::int32_t group = -1;  ///< index into TraceFile::names: "[0, 2]", or the group's name where ranks are not said
  std::int32_t group_name = -1;     ///< index into TraceFile::names: "1", "dp"
  std::int64_t message_bytes = -1;  ///< the size of the message, as nccl-tests count it
  std::int64_t sent_bytes = -1;     ///< what the rank handed to the transport; only lessons record it
};

/// A row of the timeline: a thread of the host, or a stream of the device.
struct TraceLane {
  int rank = 0;         ///< index into TraceFile::ranks
  std::string name;     ///< "stream 7", "communication", "thread 3580"
  bool device = false;  ///< a stream; false: a thread of the host
};

/// A rank that the trace has events of.
struct TraceRank {
  int rank = 0;         ///< its number; 0 where it is not stated
  bool stated = false;  ///< the trace says which rank it is of
  std::string label;    ///< "rank 3 (dp 1, tp 1)"
  int world_size = 0;   ///< 0: not said
};

/// A matrix that the traced run trained.
struct TracedMatrix {
  std::string name;       ///< the parameter's
  std::int64_t rows = 0;  ///< of the full shape
  std::int64_t cols = 0;  ///< of the full shape
};

/// All events of one name, of whatever class: what adding up by name gives.
struct NameTally {
  std::int64_t events = 0;    ///< how many
  std::int64_t total_ns = 0;  ///< the sum of their durations
};

/// A trace file, read. Events are in the order of their begin; of those that begin together, the longer one comes
/// first.
struct TraceFile {
  std::string path;                              ///< as it was asked for
  TraceDialect dialect = TraceDialect::pytorch;  ///< who wrote it
  std::string backend;                           ///< "nccl", "gloo", or "" where it is not said
  std::string title;                             ///< the lesson's name, or ""
  std::vector<TraceRank> ranks;                  ///< in ascending order
  std::vector<TraceLane> lanes;                  ///< all threads and streams with events
  std::vector<std::string> names;                ///< every text that events and calls refer to, once
  std::vector<CollectiveCall> calls;             ///< what is said of collectives
  std::vector<TraceEvent> events;                ///< of all classes but `other`
  std::vector<NameTally> tallies;                ///< [name]: of all complete events, `other` included
  std::vector<TracedMatrix> matrices;            ///< empty: not said
  std::map<std::string, std::int64_t> left_out;  ///< why → how many events
  std::vector<std::string> notes;                ///< sentences on what is missing
  std::int64_t bytes = 0;                        ///< of JSON, decompressed

  /// What an event's indices stand for: an index into `ranks`, its name, and its call or null.
  /// @{
  int rank_of(const TraceEvent& event) const { return lanes[static_cast<std::size_t>(event.lane)].rank; }
  const std::string& name_of(const TraceEvent& event) const { return names[static_cast<std::size_t>(event.name)]; }
  const CollectiveCall* call_of(const TraceEvent& event) const {
    return event.call < 0 ? nullptr : &calls[static_cast<std::size_t>(event.call)];
  }
  /// @}
};

}  // namespace muonwalk::sim
