#pragma once

#include <string>
#include <vector>

#include "tools/scale/model_shape.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// What one stage of a pipeline holds.
struct Stage {
  int blocks = 0;          ///< All blocks, also those without weights.
  Index layers = 0;        ///< Transformer layers.
  bool embedding = false;  ///< The table of tokens is here.
  bool head = false;       ///< The product that gives logits is here.
  bool cast = false;       ///< Logits are turned into fp32 here.
  bool loss = false;       ///< The loss is taken here.
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

/// The weights of the products of one layer, those that one token is multiplied with.
double product_weights(const ModelShape& model);

/// The parameters that one rank of a stage holds.
double stage_parameters(const ModelShape& model, const TrainingLayout& layout, const Stage& stage);

/// How many DP ranks have a copy of what one rank of a stage holds, in the mean over its parameters: dp of the dense
/// ones, but only dp / ep of the experts. They share the sum of gradients, and with ZeRO-1 the optimizer's state.
double copies_of(const ModelShape& model, const TrainingLayout& layout, const Stage& stage);

}  // namespace muonwalk::sim
