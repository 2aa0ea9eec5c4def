// (c) Whole matrices, dealt out in turn (round robin). A gradient is reduced to its matrix's owner, and the owner sends
// new weights to all, so no matrix is cut and nothing is gathered for Newton–Schulz. DeepSpeed deals like this in
// ZeRO-3.
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

Layout dealt_in_turn(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket) {
  return plan_layout(parameters, grid, {bucket, 1, 1, Ownership::matrices, round_robin_owners(parameters, grid.dp())});
}

std::unique_ptr<Optimizer> with_owners_in_turn(const Layout&, const MuonSettings& settings, int) {
  return std::make_unique<Muon>(settings);
}

}  // namespace

Strategy owner_in_turn() { return {'c', "owner, in turn", "DeepSpeed ZeRO-3", dealt_in_turn, with_owners_in_turn}; }

}  // namespace muonwalk
