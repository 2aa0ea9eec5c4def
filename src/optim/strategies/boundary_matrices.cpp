// (b) The buffer as a whole is cut into equal parts, so at most dp − 1 matrices lie on a boundary. Only these travel,
// each among its owners alone, and each owner orthogonalizes all of it. DeepSpeed's ZeRO-1 and 2 gather like this, and
// Megatron-LM's former distributed optimizer was cut like this.
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

Layout one_part_each(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket) {
  return plan_layout(parameters, grid, {bucket, 1, 1, Ownership::buffer, {}});
}

std::unique_ptr<Optimizer> gathering_cut_matrices(const Layout&, const MuonSettings& settings, int) {
  MuonSettings chosen = settings;
  chosen.gather = Gather::cut_matrices;
  return std::make_unique<Muon>(chosen);
}

}  // namespace

Strategy boundary_matrices() {
  return {'b', "boundary matrices", "DeepSpeed ZeRO-1 and 2", one_part_each, gathering_cut_matrices};
}

}  // namespace muonwalk
