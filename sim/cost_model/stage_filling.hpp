#pragma once

#include <string>
#include <vector>

#include "sim/cost_model/model_shape.hpp"
#include "sim/cost_model/training_layout.hpp"
#include "sim/cost_model/training_software.hpp"

namespace muonwalk::sim {

/// What one stage of a pipeline holds.
struct Stage {
  int blocks = 0;          ///< all, also those without weights
  Index layers = 0;        ///< transformer layers
  bool embedding = false;  ///< the table of tokens
  bool head = false;       ///< the product that gives logits
  bool cast = false;       ///< logits are turned into fp32 here
  bool loss = false;       ///< the loss is taken here
};

/// How the blocks of a model lie in `pp` stages. By cost (nanotron, models/base.py, build_model): a layer costs its
/// products' weights, the head vocabulary · width, all else nothing; a block goes to the present stage, and the next
/// block to the next stage once the costs so far are more than (stage + 1) / pp of all. Where the model has fewer
/// blocks than that takes, the last stages stay empty. Else: ⌈layers / pp⌉ layers each, embedding first, head last.
/// `pp` is at least 1.
std::vector<Stage> fill_stages(const ModelShape& model, int pp, const TrainingSoftware& software);

/// Why a run with this layout can't begin, however much memory there is: one sentence, or "" where it can. 1F1B needs
/// pp − 1 micro-batches, every stage a block, and every TP rank as many heads.
std::string why_it_cannot_run(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software);

/// Weights of the products of one layer, those that one token is multiplied with.
double product_weights(const ModelShape& model);

/// Weights of one layer that one rank of an expert-parallel group of `ep` holds, before TP cuts them.
double layer_weights(const ModelShape& model, int ep);

/// Parameters that one rank of a stage holds.
double stage_parameters(const ModelShape& model, const TrainingLayout& layout, const Stage& stage);

}  // namespace muonwalk::sim
