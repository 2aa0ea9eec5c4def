#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/cluster/comparison.hpp"
#include "src/optim/plan_memory.hpp"

namespace muonwalk::sim {

/// What one rank holds while it trains in one way, in bytes: as a plan has it, or as the rank counted it.
struct RankMemory {
  std::map<std::string, Index> kept;  ///< between two steps, by what it is: "master weights"
  Index kept_for_hidden = 0;          ///< all of that, for the hidden matrices alone
  std::vector<PhaseMemory> phases;    ///< of a step, in order

  /// Of all kept.
  Index held() const;
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

/// The same memory with the numbers that stand in `numbers` under these names; one that is missing there is −1.
RankMemory with_numbers(RankMemory memory, const std::string& of, const NamedNumbers& numbers);

}  // namespace muonwalk::sim
