#pragma once

#include <string>
#include <vector>

#include "sim/lesson_17/hidden_share.hpp"
#include "sim/recording/run_trace.hpp"

namespace muonwalk::sim {

/// One step of a traced run, as it was measured.
struct MeasuredWay {
  std::string title;              ///< of the step
  std::int64_t span_ns = 0;       ///< from the first phase of the first rank to the end of the last one
  std::int64_t computing_ns = 0;  ///< a rank's mean: outside of all calls
  std::int64_t in_calls_ns = 0;   ///< a rank's mean: in calls, most of it waiting
  std::int64_t under_way_ns = 0;  ///< a rank's mean: posted messages to it, from post to wait, added up
  double hidden = 0;              ///< hidden_share of these, over all ranks
};

/// The steps of a run that have a phase `from` and, later, a phase `to`, in order: each from the beginning of the first
/// `from` to that of the first `to`.
std::vector<MeasuredWay> measured_ways(const RunTrace& run, const std::string& from, const std::string& to);

/// As a table, for standard error: times differ from run to run. At most 100 columns.
std::string measured_table(const std::vector<MeasuredWay>& ways);

}  // namespace muonwalk::sim
