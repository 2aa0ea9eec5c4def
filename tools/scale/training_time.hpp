#pragma once

#include <vector>

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
};

/// The seconds of one step of training with AdamW, term by term; their sum is the step. A pipeline of p stages runs m
/// micro-batches in 1F1B. That takes m slots of the slowest stage, one slot of each other stage (divided by the chunks
/// of a stage, where stages are interleaved; Narayanan et al. 2021), and what comes after the last micro-batch on the
/// stage where that takes longest. A slot is what the accelerator or the host needs, whichever is longer. A size
/// outside those of the runs that constants were fitted to marks its term as extrapolated.
std::vector<Term> training_seconds(const StepQuestion& question);

/// The sum of these terms without the terms themselves, for searches over many layouts.
double step_seconds(const StepQuestion& question);

}  // namespace muonwalk::sim
