#include "src/model/gpt.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/model/rms_norm.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {
namespace {

Index own_pieces(const PartWorker& worker) { return worker.config.pieces / worker.sharers.size(); }

// A layer: x ← x + attention(norm(x)); x ← x + mlp(norm(x)).
Matrix layer_forward(const PartWorker& w, const LayerTensors& tensors, Matrix x, LayerSaved& saved) {
  const HeadCut cut = head_cut(w.config, w.sharers.size(), w.sharers.rank());
  saved.x = std::move(x);
  rms_norm(saved.x, tensors.attention_norm, w.config.epsilon, saved.normed, saved.inverse_rms);
  saved.middle = attention(cut, tensors, w.angles, w.sharers, saved.normed, saved.attention);
  add_onto(saved.middle, saved.x);

  rms_norm(saved.middle, tensors.mlp_norm, w.config.epsilon, saved.middle_normed, saved.middle_inverse_rms);
  Matrix out = w.config.experts > 0
                   ? mixture_of_experts(w.config, tensors, w.sharers, saved.middle_normed, saved.experts)
                   : mlp(own_pieces(w), tensors.mlp, w.sharers, saved.middle_normed, saved.mlp);
  add_onto(out, saved.middle);
  return out;
}

// Backward: what went around a half, and what went through it, each bring a gradient.
Matrix layer_backward(const PartWorker& w, const LayerTensors& tensors, Matrix d, LayerSaved& saved,
                      LayerTensors& gradients) {
  const HeadCut cut = head_cut(w.config, w.sharers.size(), w.sharers.rank());
  const Matrix d_middle_normed =
      w.config.experts > 0
          ? mixture_of_experts_backward(w.config, tensors, w.sharers, saved.middle_normed, saved.experts, d, gradients)
          : mlp_backward(own_pieces(w), tensors.mlp, w.sharers, saved.middle_normed, saved.mlp, d, gradients.mlp);
  add_onto(d, rms_norm_backward(d_middle_normed, saved.middle, tensors.mlp_norm, saved.middle_inverse_rms,
                                gradients.mlp_norm));
  const Matrix d_normed =
      attention_backward(cut, tensors, w.angles, w.sharers, saved.normed, saved.attention, d, gradients);
  add_onto(d,
           rms_norm_backward(d_normed, saved.x, tensors.attention_norm, saved.inverse_rms, gradients.attention_norm));
  saved = LayerSaved();
  return d;
}

// The output layer of a last part, or the embedding that serves as one.
template <class Tensors>
auto& output_layer(Tensors& tensors) {
  return tensors.output.empty() ? tensors.embedding : tensors.output;
}

}  // namespace

RotaryAngles rotary_angles(const GptConfig& config) {
  return rotary_angles(config.tokens, config.head_width(), config.rotary_base);
}

Matrix part_forward(const PartWorker& w, const PartTensors& tensors, const MicroBatch& tokens, Matrix x,
                    PartSaved& saved) {
  if (w.part.first) x = embed(w.config, tensors.embedding, w.sharers, tokens.inputs);
  saved.layers.resize(tensors.layers.size());
  for (std::size_t i = 0; i < tensors.layers.size(); ++i)
    x = layer_forward(w, tensors.layers[i], std::move(x), saved.layers[i]);
  if (!w.part.last) return x;
  saved.x = std::move(x);
  rms_norm(saved.x, tensors.norm, w.config.epsilon, saved.normed, saved.inverse_rms);
  saved.losses = cross_entropy(w.config, output_layer(tensors), w.sharers, saved.normed, tokens.targets, saved.loss);
  return Matrix();
}

Matrix part_backward(const PartWorker& w, const PartTensors& tensors, const MicroBatch& tokens, float scale, Matrix d,
                     PartSaved& saved, PartTensors& gradients) {
  if (w.part.last) {
    const Matrix d_normed = cross_entropy_backward(w.config, output_layer(tensors), w.sharers, saved.normed,
                                                   tokens.targets, scale, saved.loss, output_layer(gradients));
    d = rms_norm_backward(d_normed, saved.x, tensors.norm, saved.inverse_rms, gradients.norm);
    saved.x = saved.normed = Matrix();
  }
  for (std::size_t i = tensors.layers.size(); i-- > 0;)
    d = layer_backward(w, tensors.layers[i], std::move(d), saved.layers[i], gradients.layers[i]);
  saved = PartSaved();
  if (!w.part.first) return d;
  embed_backward(w.sharers, tokens.inputs, d, gradients.embedding);
  return Matrix();
}

PartGradients serial_leaf(const GptConfig& config, const PartTensors& tensors, const MicroBatch& tokens, float scale) {
  const ModelPart part = whole_model(config);
  const Sharers alone;
  const RotaryAngles angles = rotary_angles(config);
  const PartWorker worker = {config, part, alone, angles};
  PartSaved saved;
  part_forward(worker, tensors, tokens, Matrix(), saved);
  PartGradients leaf;
  leaf.loss = tree_sum(saved.losses.data(), static_cast<Index>(saved.losses.size()));
  PartTensors gradients = zeros_like(tensors);
  part_backward(worker, tensors, tokens, scale, Matrix(), saved, gradients);
  for_each_tensor(gradients, [&](Matrix& tensor) { leaf.gradients.push_back(std::move(tensor)); });
  return leaf;
}

float serial_loss(const GptConfig& config, const PartTensors& tensors, const MicroBatch& tokens) {
  const ModelPart part = whole_model(config);
  const Sharers alone;
  const RotaryAngles angles = rotary_angles(config);
  PartSaved saved;
  part_forward({config, part, alone, angles}, tensors, tokens, Matrix(), saved);
  return tree_sum(saved.losses.data(), static_cast<Index>(saved.losses.size())) /
         static_cast<float>(saved.losses.size());
}

Matrix next_logits(const GptConfig& config, const PartTensors& tensors, const std::vector<std::int32_t>& tokens) {
  if (tokens.empty() || static_cast<Index>(tokens.size()) > config.tokens)
    throw std::invalid_argument("a model can go on after 1 to " + std::to_string(config.tokens) + " tokens, not " +
                                std::to_string(tokens.size()));
  const ModelPart part = whole_model(config);
  const Sharers alone;
  const RotaryAngles angles = rotary_angles(config);
  // A whole sequence: what comes after the last token is seen by none before it.
  MicroBatch padded{tokens, std::vector<std::int32_t>(static_cast<std::size_t>(config.tokens), 0)};
  padded.inputs.resize(static_cast<std::size_t>(config.tokens), 0);
  PartSaved saved;
  part_forward({config, part, alone, angles}, tensors, padded, Matrix(), saved);
  Matrix last(1, config.vocabulary);
  std::copy_n(saved.loss.logits.data() + (static_cast<Index>(tokens.size()) - 1) * config.vocabulary, config.vocabulary,
              last.data());
  return last;
}

}  // namespace muonwalk
