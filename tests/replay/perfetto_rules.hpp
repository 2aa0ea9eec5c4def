#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace muonwalk::testing {

/// A slice of a trace, in whole nanoseconds.
struct TraceSlice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string category;
  std::string name;
  nlohmann::json args;
};

/// What a trace holds, as a viewer understands it.
struct ReadTrace {
  nlohmann::json whole;
  std::string broken;  ///< A line for each rule that it breaks, with what breaks it.
  std::map<std::int64_t, std::string> processes;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads;             ///< (process, thread) → name
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<TraceSlice>> slices;  ///< in the order of the file
  std::map<std::int64_t, std::int64_t> arrows;                                      ///< sender → arrows that leave it

  /// The slices of the thread of this name in a process; none where there is no such thread.
  const std::vector<TraceSlice>& on(std::int64_t process, const std::string& thread) const;
};

/// Reads a Chrome trace and holds it to what Perfetto and chrome://tracing need in order to show it as it is meant;
/// `broken` then has a line for each rule that is broken. Throws where it is not JSON, or an event lacks something.
///   - events are of the kinds X, M, s, f and C;
///   - slices have a name and a category and do not end before they begin; those of a thread nest, and of two that
///     begin together the outer one comes first;
///   - an arrow has one beginning and one end, in this order, each inside of a slice;
///   - the values of a counter are in the order of time, and "bytes sent" never gets less;
///   - each process and each thread that has slices has a name, which no other has, and a place among the others.
ReadTrace read_by_perfettos_rules(const std::string& text);

}  // namespace muonwalk::testing
