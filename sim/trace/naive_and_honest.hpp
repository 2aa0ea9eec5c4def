#pragma once

#include <string>
#include <vector>

#include "sim/trace/trace_summary.hpp"

namespace muonwalk::sim {

/// What adding up by name makes of a rank's collectives: all events whose name holds the name of one that the rank
/// called, ranges and operators as well as the calls themselves. Slices of computation that bear the name of a range
/// are not in it: how many there are depends on the clock.
NameTally tally_by_name(const TraceFile& file, const RankSummary& rank);

/// The figures of the first rank as they are often read, and beside them as they should be: a row each, as a table.
/// `files` are what `summary` was made from, a file a rank or one for all.
std::vector<std::string> naive_and_honest(const std::vector<TraceFile>& files, const Summary& summary);

}  // namespace muonwalk::sim
