#pragma once

#include <string>
#include <vector>

#include "sim/ranks/reports.hpp"

namespace muonwalk::sim {

/// The table of predicted and counted bytes and messages.
struct CostTable {
  std::vector<std::string> lines;  ///< The lines as they are printed.
  std::string sum;                 ///< One line in their place, where every number was predicted exactly.
  bool equal = true;               ///< every number was predicted exactly
};

/// A line for each group, kind and element type, where all was predicted exactly from the rank that sent least to the
/// one that sent most; with `every_set`, or where something differs, a line for each set of ranks that moved the same.
/// Then the same of what Linux has counted, where known, and of the peak of elements held, where predicted.
/// `why_no_count` is said in place of Linux's count where that is not known; empty: nothing is.
CostTable cost_table(const std::vector<RankCost>& ranks, const std::string& why_no_count = "", bool every_set = false);

}  // namespace muonwalk::sim
