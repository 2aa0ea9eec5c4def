#pragma once

#include "sim/analyser/trace_summary.hpp"
#include "sim/cluster/named_numbers.hpp"
#include "sim/recording/run_trace.hpp"

namespace muonwalk::sim {

/// The calls of a run by rank, collective, element type and group, and the bytes that the rank handed to the transport
/// in them: "rank 0, all_gather of float32 in [0, 1]: calls" and "…: bytes". A line of a summary that does not say its
/// bytes has calls alone.
NamedNumbers call_counts(const Summary& summary);

/// The same from the ledgers, which the transports kept while they sent, without any trace: what a trace must agree
/// with.
NamedNumbers ledger_counts(const RunTrace& run);

/// Writes a run as --trace does and reads it back as muonwalk-trace does: what any reader of the file would see, but
/// without a file.
TraceFile written_and_read(const RunTrace& run);

}  // namespace muonwalk::sim
