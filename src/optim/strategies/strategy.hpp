#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/layout/buffer.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk {

/// The FLOPs of Newton–Schulz on each DP rank of a layout if it orthogonalizes the matrices of which it owns an
/// element.
std::vector<double> work_of_owners(const Layout& layout, int ns_steps);

/// How the step of Muon is distributed: who owns what, and the optimizer that takes the step there.
struct Strategy {
  char letter;       ///< 'a'
  const char* name;  ///< "gather everything"
  /// The layout of its ranks. A bucket is full at `bucket` elements, 0: one bucket for all. Throws as plan_layout does.
  Layout (*lay_out)(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket);
  /// The optimizer for one rank of that layout, as it is after `steps` steps, which only block_wise counts. Throws
  /// UsageError where it can't work with these settings.
  std::unique_ptr<Optimizer> (*optimizer)(const Layout& layout, const MuonSettings& settings, int steps);
  /// After how many steps it does the same again: 1, or kBlockWisePeriod.
  int period = 1;
  /// It has the bits of Muon on one process. Otherwise the optimizer's own reference adds or works in pieces, too.
  bool is_muon = true;
  /// The FLOPs of Newton–Schulz on each DP rank, if TP cuts nothing: from the layout alone, without a plan.
  std::vector<double> (*newton_schulz_work)(const Layout& layout, int ns_steps) = work_of_owners;
};

/// (a) to (h). Those with a step of their own have a file of their own, the others are in strategies.cpp.
/// @{
Strategy gather_everything();
Strategy boundary_matrices();
Strategy owner_in_turn();
Strategy owner_by_work();
Strategy all_to_all();
Strategy tp_duplicated();
Strategy distributed_gram();
Strategy block_wise();
/// @}

/// (d) over tp as well as dp, for any layout: Muon, but a matrix is orthogonalized by one rank of its TP group, and by
/// the others not at all (owners_over_tp.cpp). settings.gather counts as Gather::buckets. Throws UsageError where
/// settings.second_moment is used.
std::unique_ptr<Optimizer> muon_owned_over_tp(const MuonSettings& settings);

/// All of them, in the order of their letters.
std::vector<Strategy> strategies();
/// The one of a letter, "a" or "(a)"; nothing for any other text.
std::optional<Strategy> strategy_of(const std::string& letter);

namespace phases {
/// What (e) has in place of the DP gather and the DP shard of a matrix, and (d) over tp around its TP gathers: the
/// parts of all matrices of a bucket go to the matrices' workers, and come back orthogonal.
/// @{
constexpr Phase to_workers = "all-to-all to workers";
constexpr Phase to_owners = "all-to-all to owners";
/// @}
}  // namespace phases

/// Of this many steps, block_wise gathers whole matrices in the first, and blocks stay alone in the others.
constexpr int kBlockWisePeriod = 2;

}  // namespace muonwalk
