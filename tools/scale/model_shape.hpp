#pragma once

#include <string>
#include <vector>

#include "src/train/published_models.hpp"

namespace muonwalk::sim {

/// Tensors of a model that have one shape and one purpose, counted.
struct TensorClass {
  Shape shape;                             ///< The shape of each, before TP cuts it.
  SplitDim tp_split_dim = SplitDim::rows;  ///< What TP cuts.
  TensorKind kind = TensorKind::hidden;    ///< What they are for.
  Index count = 1;                         ///< How many the whole model has.

  /// The elements of one of them, and of all.
  /// @{
  double elements() const { return static_cast<double>(shape.size()); }
  double all_elements() const { return elements() * static_cast<double>(count); }
  /// @}
  /// Whether Muon takes them.
  bool muons() const { return kind == TensorKind::hidden || kind == TensorKind::expert; }
};

/// What the cost model knows of a model: the sizes that were published of it, and its tensors by shape. `tied` holds
/// for models like GPT-2, too.
struct ModelShape : ModelConfiguration {
  Index hidden = 0;  ///< Channels inside of the feed-forward half; with experts: of all that one token visits.
  std::vector<TensorClass> tensors = {};

  double parameters() const;
  /// The parameters that Muon takes.
  double muon_parameters() const;
  /// The FLOPs of Newton–Schulz for each of its matrices once.
  double newton_schulz_flops(int steps = 5) const;
};

/// The models that the cost model knows, those of known_models: those of model_names, the four of the Ultra-Scale
/// Playbook ("1B", "3B", "8B", "80B") and the four of Megatron's table ("megatron-22b", "megatron-175b",
/// "megatron-530b", "megatron-1t").
std::vector<std::string> model_shape_names();

/// The model of that name. Throws UsageError, one sentence with the names that are known, for another one.
const ModelShape& model_shape(const std::string& name);

}  // namespace muonwalk::sim
