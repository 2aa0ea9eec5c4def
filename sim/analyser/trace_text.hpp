#pragma once

#include <string>
#include <vector>

#include "sim/analyser/published_figures.hpp"
#include "sim/analyser/trace_comparison.hpp"
#include "sim/analyser/trace_summary.hpp"

namespace muonwalk::sim {

/// What muonwalk-trace prints: lines of at most 100 columns where names allow it, the same for the same files.
/// @{
std::vector<std::string> summary_text(const Summary& summary);
std::vector<std::string> comparison_text(const TraceComparison& comparison);
std::vector<std::string> published_text(const std::vector<PublishedClaim>& claims,
                                        const std::vector<std::string>& paths);
/// @}

}  // namespace muonwalk::sim
