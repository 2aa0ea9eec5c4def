#pragma once

#include <string>
#include <vector>

#include "src/train/published_models.hpp"

namespace muonwalk::sim {

/// Tensors of a model that have one shape and one purpose, counted.
struct TensorClass {
  Shape shape;            ///< whole
  SplitDim tp_split_dim;  ///< what TP cuts
  TensorKind kind;        ///< what they are for
  Index count = 0;        ///< in the whole model
  /// Elements of one of them.
  double elements() const { return static_cast<double>(shape.size()); }
};

/// What the cost model knows of a model: sizes for its arithmetic and its activations, and its tensors by shape.
struct ModelShape {
  std::string name;      ///< "llama-7b"
  Index layers = 0;      ///< transformer layers
  Index width = 0;       ///< of the residual stream
  Index heads = 0;       ///< of queries
  Index kv_heads = 0;    ///< of keys and values
  Index head_width = 0;  ///< channels of a head
  Index hidden = 0;      ///< channels inside of the feed-forward half; with experts: of all that one token visits
  Index vocabulary = 0;  ///< tokens that there are
  Index tokens = 0;      ///< in a sequence, as it was trained
  bool tied = false;     ///< the output layer is the embedding once more
  bool gated = true;     ///< three matrices in a feed-forward half (SwiGLU); false: two
  Index experts = 0;     ///< that a router chooses from, per layer; 0: a dense model
  Index chosen = 0;      ///< experts per token
  std::vector<TensorClass> tensors;  ///< all of them
  std::string source;                ///< of these numbers

  /// All parameters; those that one token is multiplied with (experts: only the chosen ones, no embedding); and those
  /// that Muon takes.
  /// @{
  double parameters() const;
  double active_parameters() const;
  double muon_parameters() const;
  /// @}
  /// Forward and backward, per token: 6 for each active parameter and 12 · layers · heads · head_width · tokens for
  /// attention (the whole square, as is usual; Narayanan et al. 2021, section 3).
  double flops_per_token() const;
};

/// The models that the cost model knows: those of model_names, the four of the Ultra-Scale Playbook ("1B", "3B", "8B",
/// "80B") and the four of Megatron's table ("megatron-22b", "megatron-175b", "megatron-530b", "megatron-1t").
std::vector<std::string> model_shape_names();

/// The model of that name. Throws UsageError, one sentence with the names that are known, for another one.
const ModelShape& model_shape(const std::string& name);

}  // namespace muonwalk::sim
