#include "src/train/compared_optimizers.hpp"

#include <numeric>

#include "src/numerics/philox.hpp"
#include "src/numerics/products.hpp"
#include "src/optim/named_slice.hpp"
#include "src/train/serial_adamw.hpp"

namespace muonwalk {

const char* optimizer_name(OptimizerKind kind) { return kind == OptimizerKind::muon ? "Muon" : "AdamW"; }

OptimizerState initial_state(OptimizerKind kind, const Layout& layout, const TrainingData& data, int tp_rank) {
  std::vector<int> all(data.parameters().size());
  std::iota(all.begin(), all.end(), 0);
  OptimizerState state;
  state.kind = kind;
  state.muon = initial_state(layout, data, all, tp_rank);
  if (kind == OptimizerKind::adamw) {
    state.adamw = initial_adamw_buckets(state.muon.weights);
    state.muon = MuonState();
  }
  return state;
}

Buckets weights_of(const OptimizerState& state) {
  return state.kind == OptimizerKind::muon ? state.muon.weights : weights_of(state.adamw);
}

Index state_elements(const OptimizerState& state) {
  return state.kind == OptimizerKind::muon ? state_elements(state.muon) : state_elements(state.adamw);
}

void optimizer_step(const Layout& layout, const Place& place, Communicator& dp, Communicator& tp,
                    const MuonSettings& settings, const Buckets& gradients, int step, OptimizerState& state,
                    const std::function<void(const std::string& phase)>& observer) {
  const auto begin = [&observer](const char* phase) {
    if (observer) observer(phase);
  };
  if (state.kind == OptimizerKind::adamw) {
    adamw_step(dp, gradients, state.adamw, step, AdamWSettings(), begin);
    return;
  }
  full_step(layout, place, dp, tp, settings, gradients, state.muon,
            [&begin](Phase phase) { begin(phase_name(phase)); });
}

Ledger predict_optimizer_step(OptimizerKind kind, const Layout& layout, const Place& place,
                              const MuonSettings& settings) {
  return kind == OptimizerKind::muon ? predict_full_step(layout, place, settings) : predict_adamw_step(layout, place);
}

std::vector<NamedMatrix> serially_trained(OptimizerKind kind, const TrainingData& data, int steps, const Grid& grid,
                                          const Place& place, const MuonSettings& settings) {
  const std::vector<NamedMatrix> whole = kind == OptimizerKind::adamw
                                             ? serial_adamw(data, steps, grid.dp(), AdamWSettings())
                                             : ReferenceRun(data, settings).after(steps, grid.dp());
  std::vector<NamedMatrix> slices;
  for (std::size_t p = 0; p < whole.size(); ++p)
    slices.push_back(named_slice(data.parameters()[p], whole[p].matrix, grid.tp(), place.tp));
  return slices;
}

void stand_in_for_model(const std::vector<NamedMatrix>& layers, Index tokens, int threads) {
  for (const NamedMatrix& layer : layers) {
    const Matrix inputs = random_matrix({0, 0}, layer.matrix.cols(), tokens);
    Matrix outputs, gradient_of_weights, gradient_of_inputs;
    multiply(layer.matrix, inputs, outputs, threads);
    multiply(outputs, inputs.transposed(), gradient_of_weights, threads);
    multiply(layer.matrix.transposed(), outputs, gradient_of_inputs, threads);
  }
}

}  // namespace muonwalk
