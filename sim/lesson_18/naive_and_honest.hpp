#pragma once

#include <string>
#include <vector>

#include "sim/analyser/trace_summary.hpp"

namespace muonwalk::sim {

/// What adding up by name makes of a rank's collectives: all events whose name holds the name of one that the rank
/// called, ranges and operators as well as the calls themselves. Slices of computation that bear the name of a range
/// are not in it: how many there are depends on the clock.
NameTally tally_by_name(const TraceFile& file, const RankSummary& rank);

/// Takes all those events for calls, in every line of every rank: what a reader gets who forgets that ranges have
/// names, too.
void take_names_for_calls(const std::vector<TraceFile>& files, Summary& summary);

/// What the communication of a run comes to, on all ranks that were traced.
struct RunTotals {
  std::int64_t calls = 0;           ///< of collectives, each once
  std::int64_t events_by_name = 0;  ///< tally_by_name
  std::int64_t sent_bytes = 0;      ///< where the trace says them
};
/// The totals of a trace and of its summary.
RunTotals totals_of(const TraceFile& file, const Summary& summary);

/// The figures of the first rank as they are often read, and beside them as they should be: a row each, as a table.
/// `files` are what `summary` was made from, a file a rank or one for all.
std::vector<std::string> naive_and_honest(const std::vector<TraceFile>& files, const Summary& summary);

}  // namespace muonwalk::sim
