#pragma once

#include <vector>

#include "tools/scale/step_question.hpp"

namespace muonwalk::sim {

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
