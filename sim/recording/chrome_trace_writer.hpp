#pragma once

#include <string>

#include "sim/recording/run_trace.hpp"

namespace muonwalk::sim {

/// Writes all ranks of a run into one Chrome trace, for chrome://tracing, Perfetto and muonwalk-trace, whole or not at
/// all. trace_dialects.hpp says which events it has; those of no duration are, besides names and the order of rows:
///   - an arrow for each message, from the moment in which the sender hands it over to the one in which the receiver's
///     exchange is done; only where both ends were recorded;
///   - counters: "bytes sent" since the start, after each call; "elements held" in matrices and flat buffers, at the
///     beginning and the end of whatever was recorded (what is held in between for a shorter time is not seen).
/// Throws UsageError as FileBeside does.
void write_chrome_trace(const std::string& path, const RunTrace& run);

/// What write_chrome_trace writes.
std::string chrome_trace_text(const RunTrace& run);

}  // namespace muonwalk::sim
