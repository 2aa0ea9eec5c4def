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
  bool explained = true;             ///< Terms say how they come about; else they are amounts alone, which is faster.

  /// The same question about amounts alone.
  StepQuestion unexplained() const { return {model, cluster, software, layout, false}; }
  /// A number of a formula that answers it: with its name, where terms are explained.
  Formula in(const TermInput& named) const { return explained ? Formula(named) : named.value; }
};

/// The share of a card's memory that is left for a program: 10⁹ of every 2³⁰ bytes. The rest holds its context and
/// NCCL's buffers.
constexpr double kCardShare = kGigabyte / kGibibyte;

/// Bytes at the peak on one rank of a stage, term by term. Activations are those of min(m, pp − stage) micro-batches,
/// as 1F1B has it. `stage` counts from 0.
std::vector<Term> stage_bytes(const StepQuestion& question, int stage);

/// The terms of the stage that needs most, without what the allocator can take back when memory is short: inputs of
/// products that were gathered from other ranks. Their sum decides whether a layout fits.
std::vector<Term> training_bytes(const StepQuestion& question);

/// The sum of stage_bytes on the stage where it is largest.
double peak_bytes(const StepQuestion& question);

/// Whether training_bytes of this sum fit into the usable share of the card.
bool fits(double bytes, const Cluster& cluster, const TrainingSoftware& software);

}  // namespace muonwalk::sim
