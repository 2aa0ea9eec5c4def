#pragma once

#include "tools/scale/cluster.hpp"
#include "tools/scale/model_shape.hpp"
#include "tools/scale/term.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// What is asked: one training step of a model, laid out over a cluster.
struct StepQuestion {
  const ModelShape& model;           ///< The model that is trained.
  const Cluster& cluster;            ///< Where it is trained.
  const TrainingSoftware& software;  ///< The program that trains it.
  TrainingLayout layout;             ///< A sensible one (require_sensible) for the cluster's nodes.
  bool explained = true;             ///< Terms say how they come about; else they are amounts alone, which is faster.

  /// The same question about amounts alone.
  StepQuestion unexplained() const { return {model, cluster, software, layout, false}; }
  /// A number of a formula that answers it: with its name, where terms are explained.
  Formula in(const TermInput& named) const { return explained ? Formula(named) : named.value; }
};

}  // namespace muonwalk::sim
