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
  if (part.first) tensors.embedding = std::move(*next++);
  for (Index i = part.layers.begin; i < part.layers.end; ++i) {
    LayerTensors& layer = tensors.layers.emplace_back();
    for (Matrix* tensor : {&layer.attention_norm, &layer.query, &layer.key, &layer.value, &layer.output,
                           &layer.mlp_norm, &layer.mlp.gate, &layer.mlp.up, &layer.mlp.down})
      *tensor = std::move(*next++);
  }
  if (part.last) tensors.norm = std::move(*next++);
  if (part.last && !(config.tied && part.first)) tensors.output = std::move(*next++);
  return tensors;
}

PartTensors zeros_like(const PartTensors& tensors) {
  const auto zeros = [](const Matrix& tensor) { return Matrix(tensor.rows(), tensor.cols()); };
  PartTensors all{zeros(tensors.embedding), {}, zeros(tensors.norm), zeros(tensors.output)};
  for (const LayerTensors& of : tensors.layers)
    all.layers.push_back({zeros(of.attention_norm),
                          zeros(of.query),
                          zeros(of.key),
                          zeros(of.value),
                          zeros(of.output),
                          zeros(of.mlp_norm),
                          {zeros(of.mlp.gate), zeros(of.mlp.up), zeros(of.mlp.down)}});
  return all;
}

}  // namespace muonwalk
