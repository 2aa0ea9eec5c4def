#pragma once

#include <string>
#include <vector>

#include "sim/analyser/published_figures.hpp"
#include "sim/analyser/trace_comparison.hpp"
#include "sim/analyser/trace_summary.hpp"

namespace muonwalk::sim {

/// The same as trace_text.hpp has it, as JSON with a newline at its end. Times are in milliseconds, bandwidths in GB/s,
/// sizes in bytes, shares from 0 to 1; what is not known is null. The formats are "muonwalk-trace-summary",
/// "-comparison" and
/// "-published", version 1.
/// @{
std::string summary_json(const Summary& summary);
std::string comparison_json(const TraceComparison& comparison);
std::string published_json(const std::vector<PublishedClaim>& claims, const std::vector<std::string>& paths);
/// @}

}  // namespace muonwalk::sim
