#pragma once

#include <vector>

#include "sim/cost_model/cluster.hpp"
#include "sim/cost_model/model_shape.hpp"
#include "sim/cost_model/prediction.hpp"
#include "sim/cost_model/training_layout.hpp"
#include "sim/cost_model/training_software.hpp"

namespace muonwalk::sim {

/// Of a card's memory, what a program has before anything is counted: 10⁹ of every 2³⁰ bytes. The rest holds its
/// context and NCCL's buffers.
constexpr double kCardShare = kGigabyte / kGibibyte;

/// The name of the term that Muon replaces.
constexpr const char* kTwoMoments = "AdamW's two moments";

/// Bytes at the peak on one rank of a stage, term by term. Activations are those of min(m, pp − stage) micro-batches,
/// as 1F1B has it. `stage` is from 0 to pp − 1.
std::vector<Term> stage_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software,
                              int stage);

/// The same on the stage that needs most, without what the allocator can take back when memory is short: inputs of
/// products that were gathered from other ranks. This decides whether a layout fits.
std::vector<Term> training_bytes(const ModelShape& model, const TrainingLayout& layout,
                                 const TrainingSoftware& software);

/// The sum of training_bytes, without the terms: for searches over many layouts.
double firm_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software);

/// The sum of stage_bytes on the stage where that is largest.
double peak_bytes(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software);

/// Whether the term's memory is free again when the optimizer steps.
bool is_transient(const Term& term);

/// Whether training_bytes of this sum fit into the card: into its usable share.
bool fits(double bytes, const Cluster& cluster, const TrainingSoftware& software);

}  // namespace muonwalk::sim
