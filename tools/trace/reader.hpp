#pragma once

#include <string>
#include <vector>

#include "tools/trace/event.hpp"

namespace muonwalk::sim {

/// Reads a trace of either dialect (TraceDialect), plain or gzip, in one pass and with bounded memory. What is
/// damaged or in no figure is left out and counted. Throws UsageError, one sentence, when the file can't be read, is
/// not JSON, is cut off, or holds nothing that could be counted.
TraceFile read_trace(const std::string& path);

/// Reads one from a text in memory; `name` stands for it in errors.
TraceFile read_trace_text(const std::string& name, std::string text);

/// Reads several files of one run. A folder with a trace per rank stands for all files in it that end in .json or
/// .json.gz, in the order of their names. Throws UsageError, one sentence, also for a folder without any, and when
/// files don't belong together: two of the same rank, world sizes or dialects that differ, ranks outside the world, or
/// clocks that never overlap.
std::vector<TraceFile> read_traces(const std::vector<std::string>& paths);

}  // namespace muonwalk::sim
