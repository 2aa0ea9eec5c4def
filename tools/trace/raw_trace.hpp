#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/trace/event.hpp"
#include "tools/trace/trace_input.hpp"

namespace muonwalk::sim {

/// What one pass over the JSON keeps: a TraceFile, but for what depends on all that the file says of itself.
struct RawTrace {
  /// Holds nothing yet of the file that errors call `path`.
  explicit RawTrace(const std::string& path) : budget(path) { file.path = path; }

  /// The number of a text, each kept once; one that is new is paid for, and gets the next.
  std::int32_t number(const std::string& text);
  /// The text of a number that was given out.
  const std::string& text(std::int32_t number) const { return *texts[static_cast<std::size_t>(number)]; }

  TraceBudget budget;  ///< What may still be kept.
  TraceFile file;      ///< Events have no class yet, and in place of their rank the number of their process ("pid").
  std::unordered_map<std::string, std::int32_t> numbers;  ///< Of every text.
  std::vector<const std::string*> texts;                  ///< By their numbers.
  std::map<std::int32_t, std::int64_t> dropped;       ///< Category → events that are in no figure, in any dialect.
  std::map<std::int32_t, std::string> process_names;  ///< Process → its name.
  bool has_events = false;                            ///< "traceEvents" was there.
  std::int64_t rank = -1, world_size = 0;             ///< What the file says of its one rank; −1 and 0 if nothing.
  std::int64_t without_room = 0;                      ///< Events that the recording had no room for.
  bool failed = false;                                ///< The file says that the check of the run failed.
};

/// Reads a file in one pass. Throws UsageError, one sentence that names it `path`, when it is not JSON, is cut off, has
/// no "traceEvents", or holds more than a TraceBudget allows.
RawTrace read_raw_trace(const std::string& path, TraceInput& input);

}  // namespace muonwalk::sim
