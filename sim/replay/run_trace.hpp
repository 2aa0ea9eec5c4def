#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/replay/span_buffer.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::sim {

/// One rank of a traced run: what it did from the beginning to the end, and who it was.
struct RankTrace : SpanBatch {
  std::string label;          ///< The label: "rank 3 (dp 1, tp 1)".
  std::vector<Group> groups;  ///< The groups, by Span::group; the rank is in none of those without ranks.
  Ledger ledger;              ///< What the rank sent in all, as the transports counted it.
};

/// A traced run: what its ranks recorded, and what was asked for.
struct RunTrace {
  std::string name;              ///< The lesson: "lesson_09_full_step".
  std::string title;             ///< Its title: "The full step".
  Grid grid;                     ///< The grid of its ranks.
  std::string precision;         ///< The precision: "fp32".
  std::string backend;           ///< The transport: "gloo", "memory".
  std::int64_t began_ns = 0;     ///< The time 0 of the trace, on the clock of the spans.
  std::vector<RankTrace> ranks;  ///< The ranks, by their numbers.
  bool ok = true;                ///< The run's checks held.
};

/// A slice of a rank's own thread.
struct ComputationSlice {
  std::int64_t begin_ns = 0;  ///< The beginning, on the clock of the spans.
  std::int64_t end_ns = 0;    ///< The end, on the same clock.
  std::string name;           ///< The name in the trace.
};

/// What a rank did by itself: within its steps, all time in which it was not in a call; named by the phase, or else by
/// the step, and cut where these begin and end. What came after an entry that had no room is left out, as it may have
/// been a call. In the order of time.
std::vector<ComputationSlice> computation_of(const RankTrace& rank);

/// True for the title of a step of the optimizer, "optimizer step 3" or "training step 3". Other steps of a lesson
/// prepare, or show one part of such a step.
bool is_optimizer_step(const std::string& title);

/// The ranks of a group: "[0, 2]", as PyTorch writes them.
std::string group_ranks_text(const Group& group);

}  // namespace muonwalk::sim
