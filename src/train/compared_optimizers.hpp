#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/training_data.hpp"

namespace muonwalk {

/// Muon and AdamW behind one set of functions, for runs that compare them on the same matrices, buckets and gradients.
enum class OptimizerKind { adamw, muon };

/// "AdamW", "Muon".
const char* optimizer_name(OptimizerKind kind);

/// What one rank keeps between steps; the state of the other optimizer is empty.
struct OptimizerState {
  OptimizerKind kind = OptimizerKind::muon;  ///< which of the two is in use
  MuonState muon;                            ///< weights and momentum
  AdamWBuckets adamw;                        ///< weights and both moments
};

/// The state before the first step, of all parameters of `data`, from which the layout was planned.
OptimizerState initial_state(OptimizerKind kind, const Layout& layout, const TrainingData& data, int tp_rank);

/// This rank's TP slices of all weights: whole buckets.
Buckets weights_of(const OptimizerState& state);

/// Elements that this rank keeps besides the weights.
Index state_elements(const OptimizerState& state);

/// One step with this rank's own `gradients` (whole buckets): full_step, or adamw_step with its default settings.
/// `step` counts from 1 on. `observer` is told the name of each phase as it begins.
void optimizer_step(const Layout& layout, const Place& place, Communicator& dp, Communicator& tp,
                    const MuonSettings& settings, const Buckets& gradients, int step, OptimizerState& state,
                    const std::function<void(const std::string& phase)>& observer = nullptr);

/// What optimizer_step makes this rank send and receive.
Ledger predict_optimizer_step(OptimizerKind kind, const Layout& layout, const Place& place,
                              const MuonSettings& settings);

/// The reference for the rank at `place`: its TP slices of all parameters after `steps` steps in one process, which
/// trains whole matrices with the gradients of all data-parallel ranks (SerialMuon, serial_adamw).
std::vector<NamedMatrix> serially_trained(OptimizerKind kind, const TrainingData& data, int steps, const Grid& grid,
                                          const Place& place, const MuonSettings& settings);

/// A stand-in for a model's forward and backward pass, where only the time that they take matters: for each matrix the
/// three products of a linear layer with so many tokens. What comes out is thrown away.
void stand_in_for_model(const std::vector<NamedMatrix>& layers, Index tokens, int threads);

}  // namespace muonwalk
