#pragma once

#include <string>
#include <vector>

#include "lessons/lesson_14_memory/memory_tables.hpp"
#include "src/train/published_models.hpp"

namespace muonwalk::sim {

/// How many parameters of which kind a model has. Muon steps those of hidden matrices and of experts.
struct ModelShares {
  Index all = 0;      ///< The sum of the others.
  Index hidden = 0;   ///< Matrices inside of the layers, but for experts.
  Index experts = 0;  ///< Matrices of experts.
  Index outer = 0;    ///< Embeddings and the output layer.
  Index vectors = 0;  ///< Gains and biases.

  Index muons() const { return hidden + experts; }
};

ModelShares shares_of(const std::vector<ModelTensor>& tensors);

/// The memory of one rank for a published model in mixed precision, planned: Newton–Schulz in bf16, buckets as large as
/// Megatron-LM makes them unless told otherwise (40 million elements, or a million per DP rank if that is more), and
/// every parameter at a multiple of 64.
struct ModelMemory {
  ModelShares shares;      ///< The whole model.
  ParameterCount of_rank;  ///< The part of it that the rank trains.
  Place place;             ///< The rank is the first of those that hold the most with ZeRO-1 and Muon.
  MemoryPair replicated;   ///< nothing is sharded over dp
  MemoryPair sharded;      ///< ZeRO-1
};

/// Throws UsageError for a model that is not known, and where TP does not divide one of its tensors.
ModelMemory model_memory(const std::string& model, const Grid& grid);

/// What `--model NAME` prints: whose parameters there are, and the table of one rank in MB (millions of bytes).
std::string model_text(const std::string& model, const Grid& grid);

/// All models of the lesson in a line each, on one grid: parameters, which part of them Muon steps, which part is in
/// experts, and Muon's bytes over AdamW's with ZeRO-1: of the optimizer's state, of all that is held between two steps,
/// and of the most at one time. Below them the model that was counted by hand in the discussion of the proof of
/// concept, of which only the shares are known.
std::string models_table(const Grid& grid);

}  // namespace muonwalk::sim
