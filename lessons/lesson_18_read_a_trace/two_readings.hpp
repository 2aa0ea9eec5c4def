#pragma once

#include <string>
#include <vector>

#include "sim/classroom/comparison.hpp"
#include "sim/replay/run_trace.hpp"
#include "tools/trace/summary.hpp"

namespace muonwalk::sim {

/// The calls of a run by rank, collective, element type and group, and the bytes that the rank handed to the transport
/// in them: "rank 0, all_gather of float32 in [0, 1]: calls" and "…: bytes". A line of a summary that does not say its
/// bytes has calls alone.
NamedNumbers call_counts(const Summary& summary);

/// Calls and bytes from the ledgers, which the transports kept while they sent, without any trace: what a trace must
/// agree with.
NamedNumbers ledger_counts(const RunTrace& run);

/// Writes a run as --trace does and reads it back as muonwalk-trace does: what any reader of the file would see, but
/// without a file.
TraceFile written_and_read(const RunTrace& run);

/// What adding up by name makes of a rank's collectives: all events whose name holds the name of one that the rank
/// called, ranges and operators as well as the calls themselves. Slices of computation that bear the name of a range
/// are not in it: how many there are depends on the clock.
NameTally tally_by_name(const TraceFile& file, const RankSummary& rank);

/// Takes all those events for calls, in every line of every rank: what a reader gets who forgets that ranges have
/// names, too.
void take_names_for_calls(const std::vector<TraceFile>& files, Summary& summary);

/// What the communication of a run comes to, on all ranks that were traced.
struct RunTotals {
  std::int64_t calls = 0;           ///< Calls of collectives, each once.
  std::int64_t events_by_name = 0;  ///< The events that tally_by_name finds.
  std::int64_t sent_bytes = 0;      ///< The bytes that were sent, where the trace says them.
};
/// The totals of a trace and of its summary.
RunTotals totals_of(const TraceFile& file, const Summary& summary);

/// The figures of the first rank as they are often read, and beside them as they should be: a row each, as a table.
/// `files` are what `summary` was made from, a file per rank or one for all.
std::vector<std::string> two_readings(const std::vector<TraceFile>& files, const Summary& summary);

}  // namespace muonwalk::sim
