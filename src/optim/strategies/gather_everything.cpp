// (a) Every bucket is cut into equal parts (ZeRO-1), and before Newton–Schulz every rank of a DP group gathers every
// bucket. Whoever owns an element of a matrix orthogonalizes all of it. So did the proof of concept for Megatron-LM
// (pull request 1428).
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

Layout equal_parts(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket) {
  return plan_layout(parameters, grid, {bucket, 1, 1, Ownership::buckets, {}});
}

std::unique_ptr<Optimizer> gathering_buckets(const Layout&, const MuonSettings& settings, int) {
  MuonSettings chosen = settings;
  chosen.gather = Gather::buckets;
  return std::make_unique<Muon>(chosen);
}

}  // namespace

Strategy gather_everything() {
  return {'a', "gather everything", "the proof of concept for Megatron-LM", equal_parts, gathering_buckets};
}

}  // namespace muonwalk
