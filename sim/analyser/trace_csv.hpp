#pragma once

#include <string>
#include <vector>

#include "sim/analyser/published_figures.hpp"
#include "sim/analyser/trace_comparison.hpp"
#include "sim/analyser/trace_summary.hpp"

namespace muonwalk::sim {

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
