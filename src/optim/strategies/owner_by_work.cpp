// (d) Whole matrices again, the one with the most work in Newton–Schulz first, each to the rank that has least so far.
// Megatron-LM's layer-wise optimizer, torchtitan's Owned and Canzona deal like this, each with a formula of its own for
// the work.
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

Layout dealt_by_work(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket) {
  return plan_layout(parameters, grid, {bucket, 1, 1, Ownership::matrices, balanced_owners(parameters, grid.dp())});
}

std::unique_ptr<Optimizer> with_owners_by_work(const Layout&, const MuonSettings& settings, int) {
  return std::make_unique<Muon>(settings);
}

}  // namespace

Strategy owner_by_work() {
  return {'d', "owner, by work", "Megatron-LM layer-wise, torchtitan", dealt_by_work, with_owners_by_work};
}

}  // namespace muonwalk
