#pragma once

#include <vector>

#include "src/model/gpt_config.hpp"

namespace muonwalk {

/// The feed-forward half of a layer, or one of the experts in it. hidden/tp stands for what TP leaves of it.
struct MlpTensors {
  Matrix gate;  ///< hidden/tp × width
  Matrix up;    ///< hidden/tp × width
  Matrix down;  ///< width × hidden/tp
};

/// The tensors of a layer, or their gradients, as one rank holds them.
struct LayerTensors {
  Matrix attention_norm;            ///< 1 × width
  Matrix query;                     ///< width/tp × width, head by head
  Matrix key;                       ///< kv_heads/tp · head_width × width; all heads where tp is larger than kv_heads
  Matrix value;                     ///< kv_heads/tp · head_width × width; all heads where tp is larger than kv_heads
  Matrix output;                    ///< width × width/tp
  Matrix mlp_norm;                  ///< 1 × width
  MlpTensors mlp;                   ///< The feed-forward half; empty with experts.
  Matrix router;                    ///< experts × width; empty without experts
  std::vector<MlpTensors> experts;  ///< Those of this rank. Of gradients, once for each rank whose rows they saw.
};

/// The tensors of a part of a model, or their gradients, as one rank holds them.
struct PartTensors {
  Matrix embedding;                  ///< vocabulary/tp × width; empty where the part has none
  std::vector<LayerTensors> layers;  ///< The layers of the part.
  Matrix norm;                       ///< 1 × width, of the last part
  Matrix output;                     ///< vocabulary/tp × width, of the last part; empty where the embedding serves
};

/// Calls work(matrix) for each tensor of a layer, in the order of part_parameters.
template <class Layer, class Work>
void for_each_tensor_of_layer(Layer& layer, const Work& work) {
  for (auto* tensor : {&layer.attention_norm, &layer.query, &layer.key, &layer.value, &layer.output, &layer.mlp_norm})
    work(*tensor);
  const auto of_mlp = [&work](auto& mlp) { work(mlp.gate), work(mlp.up), work(mlp.down); };
  if (layer.experts.empty()) return of_mlp(layer.mlp);
  work(layer.router);
  for (auto& expert : layer.experts) of_mlp(expert);
}

/// The same for each tensor of a part.
template <class Part, class Work>
void for_each_tensor(Part& part, const Work& work) {
  if (!part.embedding.empty()) work(part.embedding);
  for (auto& layer : part.layers) for_each_tensor_of_layer(layer, work);
  if (!part.norm.empty()) work(part.norm);
  if (!part.output.empty()) work(part.output);
}

/// A part's tensors from matrices in the order of part_parameters: its shapes, cut by tp. Throws std::invalid_argument
/// where they are not those.
PartTensors part_tensors(const GptConfig& config, const ModelPart& part, int tp, std::vector<Matrix> matrices);

/// Zeros of the shapes of a part's tensors; of experts, `sources` times those of all.
PartTensors zeros_like(const PartTensors& tensors, int sources = 1);

}  // namespace muonwalk
