#pragma once

#include <string>
#include <vector>

#include "sim/lesson_14/rank_memory.hpp"

namespace muonwalk::sim {

/// The memory of one rank under AdamW and under Muon, everything else being equal.
struct MemoryPair {
  std::string name;  ///< "ZeRO-1"
  RankMemory adamw;  ///< every parameter is AdamW's
  RankMemory muon;   ///< the hidden matrices are Muon's
};

/// How many parameters the rank trains: those of its TP slices, without padding.
struct ParameterCount {
  Index all = 0;     ///< of them
  Index hidden = 0;  ///< those of hidden matrices
};

/// A line for each kind of what is held between two steps, for all of it, for what comes on top of it for a moment, and
/// for the most at one time; then the bytes per parameter. Three columns for each pair: AdamW, Muon, and Muon over
/// AdamW. `title` is the first cell. Bytes are given in units of `unit`. At most 100 columns.
std::string memory_table(const std::string& title, const std::vector<MemoryPair>& pairs, const ParameterCount& count,
                         Index unit = 1);

/// A step as bars, a line per phase that holds more or less than the one before; of the phases of one matrix only the
/// one that holds most. "█" is held between steps, "▒" for a moment. At most 100 columns. `layout` is the one that was
/// planned for; bucket 0.1 is bucket 1 of buffer 0.
std::string phase_chart(const std::string& title, const RankMemory& memory, const Layout& layout);

}  // namespace muonwalk::sim
