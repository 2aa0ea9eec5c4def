#pragma once

#include <vector>

#include "sim/ranks/options.hpp"
#include "src/train/gpt_training.hpp"

namespace muonwalk::sim {

/// A model that is small enough for eight ranks to train twice in a second, and has one of everything: four layers,
/// four query heads that share two heads of keys and values, an output layer that is the embedding once more, and
/// letters for tokens. Gradients are clipped to a norm that is shorter than theirs. The seed, and what Newton–Schulz
/// computes with, are the rank's.
GptTraining toy_training(const RankInfo& rank);

/// Micro-batch `number`, `sequences` windows of a text of its own, of those of a step that are this rank's own
/// (own_micro_batches).
MicroBatch own_tokens(const GptTraining& training, const RankInfo& rank, int step, int number);

/// All of a step, in the order of their numbers.
std::vector<MicroBatch> toy_batch(const GptTraining& training, int step);

/// Gives matrices the names of the tensors of a rank's stage, in their order, as of something, and appends them
/// (append_of).
void append_named(const std::string& of, const GptTraining& training, const RankInfo& rank,
                  std::vector<Matrix> matrices, std::vector<NamedMatrix>& all);

/// What a rank's stage is, in a line: "embedding and layers 0–1, 6,656 of 11,408 parameters".
std::string stage_text(const GptTraining& training, const RankInfo& rank);

/// The tensors, or gradients, of a stage, taken apart in the order of part_parameters.
std::vector<Matrix> taken_apart(PartTensors tensors);

/// Adds each matrix to the one of the same number; takes them over where there are none yet.
void add_each(std::vector<Matrix>& sums, std::vector<Matrix> more);

/// A small step against the gradients, in place: what a stage does that doesn't wait for the end of the batch.
void step_at_once(PartTensors& tensors, const PartTensors& gradients);

}  // namespace muonwalk::sim
