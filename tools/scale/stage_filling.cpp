#include "tools/scale/stage_filling.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

double head_weights(const ModelShape& model) { return static_cast<double>(model.vocabulary * model.width); }

std::vector<Stage> stages_by_cost(const ModelShape& model, int pp) {
  const double layer = product_weights(model), head = head_weights(model);
  const double all = static_cast<double>(model.layers) * layer + head;
  std::vector<Stage> stages(static_cast<std::size_t>(pp));
  std::size_t at = 0;
  double done = 0;
  // The stage that the next block goes to, which costs so much.
  const auto next = [&](double cost) -> Stage& {
    // More blocks than stages are left for only where rounding says so: they go to the last one.
    Stage& stage = stages[std::min(at, stages.size() - 1)];
    ++stage.blocks;
    done += cost;
    if (done > all * (static_cast<double>(at + 1) / static_cast<double>(stages.size()))) ++at;
    return stage;
  };
  next(0).embedding = true;
  for (Index i = 0; i < model.layers; ++i) ++next(layer).layers;
  next(0);  // the last norm
  next(head).head = true;
  next(0).cast = true;
  next(0).loss = true;
  return stages;
}

std::vector<Stage> equal_stages(const ModelShape& model, int pp) {
  std::vector<Stage> stages(static_cast<std::size_t>(pp));
  const Index most = (model.layers + pp - 1) / pp;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    stages[i].layers = std::clamp<Index>(model.layers - static_cast<Index>(i) * most, 0, most);
    stages[i].blocks = static_cast<int>(stages[i].layers);
  }
  stages.front().embedding = true;
  Stage& last = stages.back();
  last.head = last.cast = last.loss = true;
  return stages;
}

// The weights of one layer that one rank of an expert-parallel group of `ep` holds, before TP cuts them.
double layer_weights(const ModelShape& model, int ep) {
  if (model.experts.count == 0) return product_weights(model);
  double here = 0;
  for (const TensorClass& each : model.tensors) {
    if (each.kind == TensorKind::expert) here += each.all_elements() / ep;
    if (each.kind == TensorKind::hidden) here += each.all_elements();
  }
  return here / static_cast<double>(model.layers);
}

}  // namespace

std::vector<Stage> fill_stages(const ModelShape& model, int pp, const TrainingSoftware& software) {
  return software.stages_by_cost ? stages_by_cost(model, pp) : equal_stages(model, pp);
}

std::string why_it_cannot_run(const ModelShape& model, const TrainingLayout& layout, const TrainingSoftware& software) {
  if (model.heads % layout.tp != 0)
    return fmt::format("tp {} does not divide the {} heads of {}", layout.tp, model.heads, visible_name(model.name));
  if (layout.accumulation < layout.pp - 1)
    return fmt::format("a pipeline of {} stages takes at least {} micro-batches, and there {} {}", layout.pp,
                       layout.pp - 1, layout.accumulation == 1 ? "is" : "are", layout.accumulation);
  const std::vector<Stage> stages = fill_stages(model, layout.pp, software);
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (stages[i].blocks == 0)
      return fmt::format("stage {} of {} stays empty: {} has {} layers", i, layout.pp, visible_name(model.name),
                         model.layers);
  return "";
}

double product_weights(const ModelShape& model) {
  const double width = static_cast<double>(model.width);
  const double attention = 2 * width * static_cast<double>((model.heads + model.key_value_heads) * model.head);
  return attention + (model.like_gpt2 ? 2 : 3) * width * static_cast<double>(model.hidden);
}

double stage_parameters(const ModelShape& model, const TrainingLayout& layout, const Stage& stage) {
  double whole = static_cast<double>(stage.layers) * layer_weights(model, layout.ep);
  if (stage.embedding) whole += head_weights(model);
  if (stage.head && !(model.tied && stage.embedding)) whole += head_weights(model);
  return whole / layout.tp;
}

double copies_of(const ModelShape& model, const TrainingLayout& layout, const Stage& stage) {
  if (layout.ep == 1) return layout.dp;
  TrainingLayout whole = layout;
  whole.ep = 1;
  return layout.dp * stage_parameters(model, layout, stage) / stage_parameters(model, whole, stage);
}

}  // namespace muonwalk::sim
