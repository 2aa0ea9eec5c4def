#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/model_shape.hpp"
#include "sim/cost_model/muon_cost.hpp"
#include "sim/cost_model/prediction.hpp"
#include "sim/cost_model/training_layout.hpp"
#include "sim/cost_model/training_time.hpp"

namespace muonwalk::sim {

/// What is asked: one training step of a model, laid out over a cluster.
struct StepQuestion {
  const ModelShape& model;           ///< what is trained
  const Cluster& cluster;            ///< on what
  const TrainingSoftware& software;  ///< by which program
  TrainingLayout layout;             ///< how it is laid out
};

/// One step of training, predicted.
struct StepPrediction {
  std::vector<Term> seconds;     ///< of the step: what comes one after the other on the slowest stage
  std::vector<Term> bytes;       ///< of memory at its peak, on the fullest stage
  bool fits = false;             ///< into the accelerator's memory
  double tokens_per_second = 0;  ///< of the whole cluster

  /// Of the step.
  double step_seconds() const { return total(seconds); }
};

/// With AdamW for all parameters.
StepPrediction predict_adamw(const StepQuestion& question);

/// With Muon for the matrices inside of the layers, and AdamW for the rest: the same step with what Muon adds to it
/// (muon_cost), one momentum in place of two moments, and what it holds for a moment.
StepPrediction predict_muon(const StepQuestion& question, const MuonWay& way);

/// The same where the cost of Muon is known already.
StepPrediction predict_muon(const StepQuestion& question, const MuonCost& muon);

}  // namespace muonwalk::sim
