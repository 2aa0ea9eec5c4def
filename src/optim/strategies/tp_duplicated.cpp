// (f) Matrices are dealt out over dp as in (d), by work. The ranks of the owner's TP group gather its slices, and then
// all of them do the same Newton–Schulz. (a) to (e) do so too. What is different here is that float32 travels, also
// where Newton–Schulz begins with rounding to bf16: Megatron-LM and NeMo-RL gather before they round. As rounding is
// elementwise, that changes no bit, and doubles the bytes.
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

std::unique_ptr<Optimizer> gathering_unrounded(const Layout&, const MuonSettings& settings, int) {
  MuonSettings chosen = settings;
  chosen.gather_unrounded = true;
  return std::make_unique<Muon>(chosen);
}

}  // namespace

Strategy tp_duplicated() {
  return {'f', "TP duplicated", "Megatron-LM, NeMo-RL", owner_by_work().lay_out, gathering_unrounded};
}

}  // namespace muonwalk
