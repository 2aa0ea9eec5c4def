#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/replay/collective.hpp"

namespace muonwalk::sim {

/// The two kinds of traces that muonwalk-trace reads: torch.profiler's, one rank per file; and a lesson's, all ranks on
/// one clock. README.md beside this file says what stands in them.
enum class TraceDialect { pytorch, muonwalk };

/// "pytorch", "muonwalk".
const char* dialect_name(TraceDialect dialect);

/// What an event of a trace stands for. One collective call shows up as up to four events, one each of host_operator,
/// host_range, device_range and communication: only the last one is the time that it took.
enum class EventClass : std::uint8_t {
  computation,      ///< A kernel that computes.
  communication,    ///< A kernel that communicates; in traces of lessons, a collective.
  copy,             ///< A copy or a fill of device memory.
  device_range,     ///< A named range, drawn around the kernels that were started in it.
  host_collective,  ///< A collective of Gloo, which runs on the CPU.
  host_operator,    ///< A call of an operator: where there is a device, the time to start its kernels.
  host_range,       ///< A named range of the program; in traces of lessons, a phase.
  step,             ///< One step of the optimizer, in traces of lessons.
  transfer,         ///< A posted message, until the wait for it has returned, in traces of lessons.
  other,            ///< Runtime calls, the profiler's own overhead, Python functions: they are in no figure.
};
constexpr int kEventClasses = 10;

/// "computation", "host range", …: a class in the words of the output.
const char* event_class_name(EventClass event_class);

/// Tells what an event is by its category and its name, as TraceDialect lists them.
EventClass classify(TraceDialect dialect, const std::string& category, const std::string& name);

/// Why events of a category count in no figure, for EventClass::other.
std::string why_left_out(TraceDialect dialect, const std::string& category);

/// Tells whether a range is around the optimizer's step: "Optimizer.step#Muon.step" of PyTorch, "optimizer: …" of
/// lessons.
bool names_optimizer(TraceDialect dialect, const std::string& name);

/// A complete event. Times are whole nanoseconds by the trace's clock, so that sums and differences are exact. Texts
/// are indices into TraceFile::names.
struct TraceEvent {
  std::int64_t begin_ns = 0, duration_ns = 0;
  std::int32_t name = 0, category = 0;
  std::int32_t rank = 0;   ///< An index into TraceFile::ranks.
  std::int32_t call = -1;  ///< An index into TraceFile::calls; −1 for no collective, or one without arguments.
  EventClass event_class = EventClass::other;

  /// When it ended, by the trace's clock.
  std::int64_t end_ns() const { return begin_ns + duration_ns; }
};

/// What a trace says of one call of a collective. −1 and "": it does not say; texts are indices into TraceFile::names.
struct CollectiveCall {
  Collective collective = Collective::other;
  std::int32_t group_size = 0;
  std::int32_t type = -1;           ///< The element type: "float32".
  std::int32_t group = -1;          ///< "[0, 2]", or the group's name where its ranks are not said.
  std::int32_t group_name = -1;     ///< The group's name: "1", "dp".
  std::int64_t message_bytes = -1;  ///< The size of the message, as nccl-tests count it.
  std::int64_t sent_bytes = -1;     ///< What the rank handed to the transport; only lessons record it.
};

/// A rank that the trace has events of.
struct TraceRank {
  int rank = 0;        ///< Its number; 0 where the trace does not say it.
  std::string label;   ///< The label: "rank 3 (dp 1, tp 1)".
  int world_size = 0;  ///< 0 where the trace does not say it.
};

/// What adding up by name gives: how many events there are, and the sum of their durations.
struct NameTally {
  std::int64_t events = 0, total_ns = 0;

  void add(const TraceEvent& event) { ++events, total_ns += event.duration_ns; }
};

/// A trace file, read. Events lie rank by rank, those of a rank in the order in which they begin; of those that begin
/// together, the longer one comes first.
struct TraceFile {
  std::string path;  ///< As it was asked for.
  TraceDialect dialect = TraceDialect::pytorch;
  std::string backend;                           ///< "nccl", "gloo", or "" where it is not said.
  std::string title;                             ///< The lesson's name, or "".
  std::vector<TraceRank> ranks;                  ///< In ascending order.
  std::vector<std::string> names;                ///< Every text that events and calls refer to, once.
  std::vector<CollectiveCall> calls;             ///< What is said of collectives.
  std::vector<TraceEvent> events;                ///< Those of all classes but `other`.
  std::vector<NameTally> tallies;                ///< [name]: all complete events of the name, `other` included.
  std::map<std::string, std::int64_t> left_out;  ///< Why events are in no figure, and how many.
  std::vector<std::string> notes;                ///< Sentences on what is missing.

  /// The events of the rank that has this number in `ranks`.
  struct Events {
    const TraceEvent *first, *last;  ///< The last one lies before it.
    const TraceEvent* begin() const { return first; }
    const TraceEvent* end() const { return last; }
  };
  Events events_of(int rank) const {
    const auto before = [](const TraceEvent& event, int number) { return event.rank < number; };
    const auto at = [&](int number) {
      return events.data() + (std::lower_bound(events.begin(), events.end(), number, before) - events.begin());
    };
    return {at(rank), at(rank + 1)};
  }

  /// The name of an event; its call, or null; and the text that an index into `names` stands for, "" for −1.
  /// @{
  const std::string& name_of(const TraceEvent& event) const { return names[static_cast<std::size_t>(event.name)]; }
  const CollectiveCall* call_of(const TraceEvent& event) const {
    return event.call < 0 ? nullptr : &calls[static_cast<std::size_t>(event.call)];
  }
  std::string text_of(std::int32_t name) const { return name < 0 ? "" : names[static_cast<std::size_t>(name)]; }
  /// @}
};

}  // namespace muonwalk::sim
