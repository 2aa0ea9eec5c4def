#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/analyser/event.hpp"
#include "sim/analyser/trace_budget.hpp"
#include "sim/analyser/trace_input.hpp"

namespace muonwalk::sim {

/// A complete event as it was read, before it is known which rank its process is, and which dialect the file is in.
struct RawEvent {
  std::int64_t begin_ns = 0;     ///< by the trace's clock
  std::int64_t duration_ns = 0;  ///< 0 or more
  std::int32_t name = 0;         ///< all of these are numbers in RawTrace::names
  std::int32_t category = 0;     ///< "cat"
  std::int32_t process = 0;      ///< "pid"
  std::int32_t thread = 0;       ///< "tid"
  std::int32_t call = -1;        ///< index into RawTrace::calls; −1: none
};

/// What one pass over the JSON keeps: the part of a TraceFile that does not depend on the dialect, and what its ranks,
/// tracks and events are made from once that is known.
struct RawTrace {
  /// Nothing yet of the file that errors call `path`.
  explicit RawTrace(const std::string& path) : budget(path) { file.path = path; }

  /// The number of a text; one that is new is paid for.
  std::int32_t number(const std::string& text);

  TraceBudget budget;  ///< what may still be kept
  TraceFile
      file;  ///< path, backend, title, calls, matrices, bytes; tallies; left_out of what is not an event of any dialect
  NameTable names;                               ///< every text, once
  std::vector<RawEvent> events;                  ///< that may count in some dialect
  std::map<std::int32_t, std::int64_t> dropped;  ///< category → complete events that are in no figure, in any dialect
  std::map<std::int32_t, std::string> process_names;                          ///< process → its name
  std::map<std::pair<std::int32_t, std::int32_t>, std::string> thread_names;  ///< (process, thread) → its name
  std::int64_t times_of_host = 0;  ///< calls of an nccl trace that have no time of a kernel
  bool has_events = false;         ///< "traceEvents" was there
  bool has_distributed = false;    ///< "distributedInfo" was there, with a rank
  std::int64_t rank = 0;           ///< of "distributedInfo"
  std::int64_t world_size = 0;     ///< of "distributedInfo"; 0: not said
  std::int64_t without_room = 0;   ///< events that the recording had no room for, as the file says
  bool failed = false;             ///< the file says that the check of the run failed
};

/// Reads a file in one pass. Throws UsageError, one sentence that names it `path`, when it is not JSON, is cut off, has
/// no "traceEvents", or holds more than a TraceBudget allows.
RawTrace read_raw_trace(const std::string& path, TraceInput& input);

}  // namespace muonwalk::sim
