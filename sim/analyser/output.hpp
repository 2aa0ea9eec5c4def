#pragma once

#include <string>
#include <vector>

#include "sim/analyser/comparison.hpp"
#include "sim/analyser/published.hpp"

namespace muonwalk::sim {

/// What muonwalk-trace prints: lines of at most 100 columns where names allow it, the same for the same files.
/// @{
std::vector<std::string> summary_text(const Summary& summary);
std::vector<std::string> comparison_text(const TraceComparison& comparison);
std::vector<std::string> published_text(const std::vector<PublishedClaim>& claims,
                                        const std::vector<std::string>& paths);
/// @}

/// The same as JSON with a newline at its end. Times are in milliseconds, bandwidths in GB/s, sizes in bytes, shares
/// from 0 to 1; what is not known is null. The formats are "muonwalk-trace-summary", "-comparison" and "-published",
/// version 1.
/// @{
std::string summary_json(const Summary& summary);
std::string comparison_json(const TraceComparison& comparison);
std::string published_json(const std::vector<PublishedClaim>& claims, const std::vector<std::string>& paths);
/// @}

/// The figures as CSV (RFC 4180, but with \n), a header first. A cell is empty where a figure is not known. Notes and
/// warnings have no place in it; the other formats have them.
///   summary     rank,collective,type,group,figure,value,unit
///   comparison  figure,a,b,ratio,unit
///   published   claim,figure,published,recounted,corrected,unit
/// @{
std::string summary_csv(const Summary& summary);
std::string comparison_csv(const TraceComparison& comparison);
std::string published_csv(const std::vector<PublishedClaim>& claims);
/// @}

}  // namespace muonwalk::sim
