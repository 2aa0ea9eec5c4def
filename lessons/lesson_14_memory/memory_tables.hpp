#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "sim/classroom/comparison.hpp"
#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// What one rank holds while it trains, in bytes: as a plan has it, or as the rank counted it.
struct RankMemory {
  std::map<std::string, Index> kept;  ///< between two steps, by what it is: "master weights"
  Index kept_for_hidden = 0;          ///< all that is kept for the hidden matrices alone
  std::vector<PhaseMemory> phases;    ///< the phases of a step, in order

  /// All that is kept, or what is kept of these kinds.
  /// @{
  Index held() const;
  Index held(std::initializer_list<const char*> kinds) const;
  /// @}
  /// The most at one time.
  Index most() const;
};

/// Calls `take`, which takes something that is kept from step to step, and adds the bytes that `meter` counts to what
/// `memory` has under `what`.
template <class Take>
void keep(const MemoryMeter& meter, RankMemory& memory, const std::string& what, const Take& take) {
  const Index before = meter.live_bytes();
  take();
  memory.kept[what] += meter.live_bytes() - before;
}

/// What the plan of a rank says; `hidden` is the plan for the hidden matrices alone.
RankMemory planned_memory(const Plan& plan, const Plan& hidden);

/// Every number of it, each under a name that begins with `of` and tells it from all others: "rank 2, ZeRO-1 Muon,
/// phase 07 (DP gather): most".
NamedNumbers numbers_of(const RankMemory& memory, const std::string& of);

/// The memory with the numbers that stand in `numbers` under these names; one that is missing there is −1.
RankMemory with_numbers(RankMemory memory, const std::string& of, const NamedNumbers& numbers);

/// Every number of several memories, by their names, as a matrix of one element, to be collected. Throws
/// std::logic_error for a number that float32 can't hold.
std::vector<NamedMatrix> as_matrices(const std::map<std::string, RankMemory>& counted);

/// The memory of one rank under AdamW and under Muon, everything else being equal.
struct MemoryPair {
  std::string name;  ///< "ZeRO-1"
  RankMemory adamw;  ///< every parameter is AdamW's
  RankMemory muon;   ///< the hidden matrices are Muon's
};

/// How many parameters a rank trains: those of its TP slices, without padding.
struct ParameterCount {
  Index all = 0;
  Index hidden = 0;  ///< Those of the hidden matrices, which are parameter group 0.
};
ParameterCount parameter_count(const Layout& layout);

/// A line for each kind of what is held between two steps, for all of it, for what comes on top of it for a moment, and
/// for the most at one time; then the bytes per parameter. Three columns for each pair: AdamW, Muon, and Muon over
/// AdamW. `title` is the first cell. Bytes are given in units of `unit`.
std::string memory_table(const std::string& title, const std::vector<MemoryPair>& pairs, const ParameterCount& count,
                         Index unit = 1);

/// A step as bars, a line per phase that holds more or less than the one before; of the phases of one matrix only the
/// one that holds most. "█" is held between steps, "▒" for a moment. `layout` is the one that was planned for; bucket
/// 0.1 is bucket 1 of buffer 0.
std::string phase_chart(const std::string& title, const RankMemory& memory, const Layout& layout);

}  // namespace muonwalk::sim
