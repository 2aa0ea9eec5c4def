#pragma once

#include <string>
#include <vector>

#include "sim/analyser/trace_summary.hpp"

namespace muonwalk::sim {

/// A sentence for each way in which two runs, called A and B, are not comparable, or in which their traces don't say
/// whether they are.
std::vector<std::string> comparison_warnings(const Summary& a, const Summary& b);

}  // namespace muonwalk::sim
