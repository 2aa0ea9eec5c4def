#pragma once

#include <string>
#include <vector>

#include "tools/trace/published.hpp"
#include "tools/trace/summary.hpp"

namespace muonwalk::sim {

/// What muonwalk-trace prints: lines of at most 100 columns where names allow it, the same for the same files.
/// @{
std::vector<std::string> summary_text(const Summary& summary);
std::vector<std::string> published_text(const std::vector<PublishedClaim>& claims,
                                        const std::vector<std::string>& paths);
/// @}

/// These figures as JSON, with a newline at its end. Times are in milliseconds, bandwidths in GB/s, sizes in bytes,
/// shares from 0 to 1; what is not known is null. The format is "muonwalk-trace-summary", version 1.
std::string summary_json(const Summary& summary);

}  // namespace muonwalk::sim
