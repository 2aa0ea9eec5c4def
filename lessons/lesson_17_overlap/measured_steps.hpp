#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/replay/run_trace.hpp"

namespace muonwalk::sim {

/// One step of a traced run, as it was measured. The times of all ranks are averaged, but for the span.
struct MeasuredStep {
  std::string title;
  std::int64_t span_ns = 0;       ///< From the first phase of the first rank to the end of the last one.
  std::int64_t computing_ns = 0;  ///< All time outside of calls.
  std::int64_t in_calls_ns = 0;   ///< The time in calls, most of it waiting.
  std::int64_t under_way_ns = 0;  ///< Posted messages to a rank, from post to wait, added up.
  double hidden = 0;  ///< The share of the time under way, over all ranks, that was also spent with computing.
};

/// The steps of a run that have a phase `from` and, later, a phase `to`, in order: each from the beginning of the first
/// `from` to that of the first `to`.
std::vector<MeasuredStep> measured_steps(const RunTrace& run, const std::string& from, const std::string& to);

/// The steps as a table, for standard error: times differ from run to run.
std::string measured_table(const std::vector<MeasuredStep>& steps);

}  // namespace muonwalk::sim
