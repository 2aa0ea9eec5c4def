#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "sim/classroom/comparison.hpp"
#include "src/optim/plan.hpp"
#include "src/train/published_models.hpp"

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

/// How many parameters of which kind a model has. Muon steps those of hidden matrices and of experts.
struct ModelShares {
  Index all = 0;      ///< The sum of the others.
  Index hidden = 0;   ///< Matrices inside of the layers, but for experts.
  Index experts = 0;  ///< Matrices of experts.
  Index outer = 0;    ///< Embeddings and the output layer.
  Index vectors = 0;  ///< Gains and biases.

  Index muons() const { return hidden + experts; }
};

ModelShares shares_of(const std::vector<ModelTensor>& tensors);

/// The memory of one rank for a published model in mixed precision, planned: Newton–Schulz in bf16, buckets as large as
/// Megatron-LM makes them unless told otherwise (40 million elements, or a million per DP rank if that is more), and
/// every parameter at a multiple of 64.
struct ModelMemory {
  ModelShares shares;      ///< The whole model.
  ParameterCount of_rank;  ///< The part of it that the rank trains.
  Place place;             ///< The rank is the first of those that hold the most with ZeRO-1 and Muon.
  MemoryPair replicated;   ///< nothing is sharded over dp
  MemoryPair sharded;      ///< ZeRO-1
};

/// Throws UsageError for a model that is not known, and where TP does not divide one of its tensors.
ModelMemory model_memory(const std::string& model, const Grid& grid);

/// What `--model NAME` prints: whose parameters there are, and the table of one rank in MB (millions of bytes).
std::string model_text(const std::string& model, const Grid& grid);

/// All models of the lesson in a line each, on one grid: parameters, which part of them Muon steps, which part is in
/// experts, and Muon's bytes over AdamW's with ZeRO-1: of the optimizer's state, of all that is held between two steps,
/// and of the most at one time. Below them the model that was counted by hand in the discussion of the proof of
/// concept, of which only the shares are known.
std::string models_table(const Grid& grid);

}  // namespace muonwalk::sim
