#pragma once

#include <cstdint>
#include <vector>

#include "src/model/attention.hpp"
#include "src/model/experts.hpp"
#include "src/model/tokens.hpp"

namespace muonwalk {

/// What a backward pass needs again of a layer.
struct LayerSaved {
  Matrix x;                  ///< what came in, rows × width
  Flat inverse_rms;          ///< 1 / the root mean square of each row of x.
  Matrix normed;             ///< what the attention saw
  AttentionSaved attention;  ///< What the attention's backward needs.
  Matrix middle;             ///< x and what the attention added to it
  Flat middle_inverse_rms;   ///< 1 / the root mean square of each row of the middle.
  Matrix middle_normed;      ///< what the feed-forward half saw
  MlpSaved mlp;              ///< What the feed-forward network's backward needs, or
  ExpertsSaved experts;      ///< what its experts' backward needs.
};

/// What a backward pass needs again of a part of a model for one micro-batch: its activations.
struct PartSaved {
  std::vector<LayerSaved> layers;  ///< The layers of the part.
  Matrix x;                        ///< what its last layer gave, on the last part
  Flat inverse_rms;                ///< 1 / the root mean square of each row of x.
  Matrix normed;                   ///< what the output layer saw
  LossSaved loss;                  ///< What the loss's backward needs.
  Flat losses;                     ///< The loss of each row, on the last part: in natural units.
};

/// What does the work of a part on one rank.
struct PartWorker {
  const GptConfig& config;     ///< The sizes of the model.
  const ModelPart& part;       ///< which layers
  const Sharers& sharers;      ///< who shares them
  const RotaryAngles& angles;  ///< Rotary angles of the model's positions.
};

/// The angles of a model.
RotaryAngles rotary_angles(const GptConfig& config);

/// Forward through a part, for one micro-batch: from tokens on the first part, else from `x`, what the part before it
/// gave; to what the next part takes (rows × width), or, on the last part, to nothing but saved.losses.
Matrix part_forward(const PartWorker& worker, const PartTensors& tensors, const MicroBatch& tokens, Matrix x,
                    PartSaved& saved);

/// Backward through a part, for the same micro-batch: from `d_out`, the gradient in what it gave; on the last part,
/// from its losses, each of which counts `scale` times. Returns the gradient in what it was given; nothing on the first
/// part. Gradients of tensors grow. What was saved is given up on the way. Where the output layer is the embedding and
/// both are in this part, its gradient takes both shares, that of the output layer first.
Matrix part_backward(const PartWorker& worker, const PartTensors& tensors, const MicroBatch& tokens, float scale,
                     Matrix d_out, PartSaved& saved, PartTensors& gradients);

/// What forward and backward passes through a part give: for one micro-batch, a leaf of a step's gradient and loss, or
/// the sum over several, as a balanced tree.
struct PartGradients {
  std::vector<Matrix> gradients;  ///< Gradients of the part's tensors, in the order of part_parameters.
  float loss = 0;                 ///< On the last part, the sum of the rows' losses, as a balanced tree.
};

/// The reference: forward and backward through the whole model on one process that shares it with nobody. `tensors` are
/// whole. The loss of each row counts `scale` times in the gradients (1 / the rows of a whole batch, for their mean).
PartGradients serial_leaf(const GptConfig& config, const PartTensors& tensors, const MicroBatch& tokens, float scale);

/// The mean loss of some sequences, forward alone; the model is whole.
float serial_loss(const GptConfig& config, const PartTensors& tensors, const MicroBatch& tokens);

/// The logits of the last row, 1 × vocabulary: what may follow these tokens, of which there are one sequence or less.
/// The model is whole.
Matrix next_logits(const GptConfig& config, const PartTensors& tensors, const std::vector<std::int32_t>& tokens);

}  // namespace muonwalk
