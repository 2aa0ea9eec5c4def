#pragma once

#include <string>
#include <vector>

#include "src/comm/ledger.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk::sim {

/// What one rank counted, beside what was predicted for it.
struct RankCost {
  Ledger predicted;           ///< what was predicted for it
  Ledger counted;             ///< what it counted
  Index predicted_peak = -1;  ///< elements; −1: not predicted
  Index counted_peak = 0;     ///< elements, as its MemoryMeter counted them
  bool kernel_known = false;  ///< the kernel's TCP counters could be read
  long long kernel_sent = 0;  ///< bytes of all groups, headers included
  long long header_sent = 0;  ///< bytes of headers, as the transport counted them
};

/// The table of predicted and counted bytes and messages.
struct CostTable {
  std::vector<std::string> lines;  ///< as printed
  bool equal = true;               ///< every number was predicted exactly
};

/// A line for each group, kind and element type, and for each set of ranks that moved the same; then the kernel's
/// count, where known, and the peak of elements held, where predicted.
CostTable cost_table(const std::vector<RankCost>& ranks);

}  // namespace muonwalk::sim
