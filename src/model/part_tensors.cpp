#include "src/model/part_tensors.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

#include "src/layout/slicing.hpp"

namespace muonwalk {

PartTensors part_tensors(const GptConfig& config, const ModelPart& part, int tp, std::vector<Matrix> matrices) {
  const std::vector<Parameter> parameters = part_parameters(config, part, tp);
  if (matrices.size() != parameters.size())
    throw std::invalid_argument(
        fmt::format("a part of a model with {} tensors was given {}", parameters.size(), matrices.size()));
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const Shape shape = tp_shape(parameters[i], tp);
    if (matrices[i].rows() != shape.rows || matrices[i].cols() != shape.cols)
      throw std::invalid_argument(fmt::format("{} is {}, not {}", parameters[i].name,
                                              shape_text(matrices[i].rows(), matrices[i].cols()),
                                              shape_text(shape.rows, shape.cols)));
  }
  PartTensors tensors;
  auto next = matrices.begin();
  const auto take = [&next](Matrix& into) { into = std::move(*next++); };
  if (part.first) take(tensors.embedding);
  for (Index i = part.layers.begin; i < part.layers.end; ++i) {
    LayerTensors& layer = tensors.layers.emplace_back();
    for (Matrix* tensor :
         {&layer.attention_norm, &layer.query, &layer.key, &layer.value, &layer.output, &layer.mlp_norm})
      take(*tensor);
    if (config.experts > 0) take(layer.router);
    layer.mlps.resize(static_cast<std::size_t>(config.experts > 0 ? config.experts : 1));
    for (MlpTensors& mlp : layer.mlps)
      for (Matrix* tensor : {&mlp.gate, &mlp.up, &mlp.down}) take(*tensor);
  }
  if (part.last) take(tensors.norm);
  if (part.last && !(config.tied && part.first)) take(tensors.output);
  return tensors;
}

PartTensors zeros_like(const PartTensors& tensors) {
  const auto zeros = [](const Matrix& tensor) { return Matrix(tensor.rows(), tensor.cols()); };
  PartTensors all;
  all.embedding = zeros(tensors.embedding);
  for (const LayerTensors& of : tensors.layers) {
    all.layers.push_back({zeros(of.attention_norm),
                          zeros(of.query),
                          zeros(of.key),
                          zeros(of.value),
                          zeros(of.output),
                          zeros(of.mlp_norm),
                          zeros(of.router),
                          {}});
    for (const MlpTensors& mlp : of.mlps)
      all.layers.back().mlps.push_back({zeros(mlp.gate), zeros(mlp.up), zeros(mlp.down)});
  }
  all.norm = zeros(tensors.norm);
  all.output = zeros(tensors.output);
  return all;
}

}  // namespace muonwalk
