#pragma once

#include <string>
#include <vector>

#include "sim/ranks/reports.hpp"

namespace muonwalk::sim {

/// The table of predicted and counted bytes and messages.
struct CostTable {
  std::vector<std::string> lines;  ///< The lines as they are printed.
  bool equal = true;               ///< every number was predicted exactly
};

/// A line for each group, kind and element type, and for each set of ranks that moved the same; then the kernel's
/// count, where known, and the peak of elements held, where predicted. `why_no_count` is said in place of the kernel's
/// count where that is not known; empty: nothing is.
CostTable cost_table(const std::vector<RankCost>& ranks, const std::string& why_no_count = "");

}  // namespace muonwalk::sim
