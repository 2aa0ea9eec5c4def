#include "src/model/part_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
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
    tensors.layers.emplace_back().experts.resize(static_cast<std::size_t>(config.experts / part.ep));
    for_each_tensor_of_layer(tensors.layers.back(), take);
  }
  if (part.last) take(tensors.norm);
  if (part.last && !(config.tied && part.first)) take(tensors.output);
  return tensors;
}

PartTensors zeros_like(const PartTensors& tensors, int sources) {
  PartTensors all = tensors;
  for (LayerTensors& layer : all.layers) {
    const std::vector<MlpTensors> experts = layer.experts;
    for (int more = 1; more < sources; ++more)
      layer.experts.insert(layer.experts.end(), experts.begin(), experts.end());
  }
  for_each_tensor(all, [](Matrix& tensor) { std::fill(tensor.flat().begin(), tensor.flat().end(), 0.0f); });
  return all;
}

}  // namespace muonwalk
