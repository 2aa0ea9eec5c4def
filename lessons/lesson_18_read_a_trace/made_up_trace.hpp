#pragma once

#include <string>
#include <vector>

#include "sim/classroom/comparison.hpp"
#include "tools/trace/summary.hpp"

namespace muonwalk::sim {

/// An event of a trace that is written down by hand, in whole milliseconds, to learn reading from.
struct MadeUpEvent {
  int rank = 0;          ///< The rank whose trace it stands in.
  std::string category;  ///< PyTorch's profiler has these: "kernel", "cpu_op", … (TraceDialect).
  std::string name;      ///< The name that the profiler would give it.
  int stream = 0;        ///< A stream of the device; 0 stands for the host.
  int begin = 0;         ///< Milliseconds since the trace began.
  int duration = 0;      ///< How many milliseconds it takes.

  /// Milliseconds since the trace began.
  int end() const { return begin + duration; }
};

/// The events as PyTorch's profiler would have written them, a file per rank, and read back as any trace is. A kernel
/// whose name begins with "nccl" is a call in which all ranks take part, in a group that belongs to its stream.
std::vector<TraceFile> made_up_trace(const std::vector<MadeUpEvent>& events);

/// The events as a picture of letters: a row for each rank, class of events, name and stream, and under a scale two
/// columns a millisecond.
std::vector<std::string> drawn(const std::vector<MadeUpEvent>& events);

/// What a summary says of each rank, in whole milliseconds: "rank 0: computation", "communication", "overlap",
/// "optimizer" (on the device) and "waiting"; and how many calls: "rank 0: calls".
NamedNumbers in_milliseconds(const Summary& summary);

}  // namespace muonwalk::sim
