#pragma once

#include <vector>

#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/model_shape.hpp"
#include "sim/cost_model/prediction.hpp"
#include "sim/cost_model/training_layout.hpp"
#include "sim/cost_model/training_software.hpp"

namespace muonwalk::sim {

/// The seconds of one step of training with AdamW, term by term; their sum is the step. A pipeline of p stages runs m
/// micro-batches in 1F1B: m times the slot of the slowest stage, once the slots of all others (over the chunks of a
/// stage, where stages are interleaved; Narayanan et al. 2021), and what comes after the last micro-batch on the stage
/// where that takes longest. A slot is the longer of what the accelerator and what the host needs. A size outside of
/// those of the runs that constants were fitted to marks its term as extrapolated. `layout` is sensible
/// (require_sensible) for the cluster's nodes.
std::vector<Term> training_seconds(const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                                   const TrainingSoftware& software);

/// Their sum, without the terms: for searches over many layouts.
double step_seconds(const ModelShape& model, const Cluster& cluster, const TrainingLayout& layout,
                    const TrainingSoftware& software);

}  // namespace muonwalk::sim
