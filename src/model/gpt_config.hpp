#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "src/layout/parameter.hpp"

namespace muonwalk {

/// The sizes of a GPT as people train it now: RMSNorm before each half of a layer, rotary positions, causal attention
/// with grouped-query heads, SwiGLU, no biases. Its tensors have the names and shapes that Hugging Face's Llama has (or
/// Qwen3-MoE, with experts), so that other tools can read them.
struct GptConfig {
  Index vocabulary = 256;     ///< tokens are bytes
  Index width = 64;           ///< The size of a token's vector between layers.
  Index layers = 2;           ///< each has an attention and a feed-forward half
  Index heads = 4;            ///< Heads of queries; width / heads is the width of a head.
  Index kv_heads = 2;         ///< Heads of keys and values: heads / kv_heads query heads share one.
  Index hidden = 128;         ///< channels inside of the feed-forward half
  Index tokens = 32;          ///< Tokens in a sequence.
  bool tied = false;          ///< the output layer is the embedding once more
  Index experts = 0;          ///< feed-forward halves that a router chooses from; 0: one, and no router
  Index chosen = 2;           ///< Experts per token.
  Index pieces = 4;           ///< how many leaves a sum over heads, hidden channels or vocabulary has, whatever tp is
  float epsilon = 1e-5f;      ///< The ε in the root of RMSNorm.
  float rotary_base = 10000;  ///< the longest wavelength of a rotary position is about 2π times this

  /// Channels of one head.
  Index head_width() const { return width / heads; }
  /// The most rows of a micro-batch of `rows` that an expert takes: 1.25 times an equal share (the capacity of Fedus et
  /// al., "Switch Transformers", 2021). So what is sent to an expert has one size, whatever the router says.
  Index capacity(Index rows) const { return std::min(rows, (5 * rows * chosen + 4 * experts - 1) / (4 * experts)); }
};

/// Refuses sizes that make no model, or none that `tp` ranks can share. Throws UsageError, one sentence that names the
/// sizes and what would work.
void require_sensible(const GptConfig& config, int tp = 1);

/// Some layers of a model that follow each other: what a pipeline stage holds. The first part has the embedding, the
/// last one the norm and the output layer; with a tied output layer, a last part that is not the first has a copy of
/// the embedding.
struct ModelPart {
  Range layers;       ///< which ones
  bool first = true;  ///< takes tokens
  bool last = true;   ///< gives the loss
  /// It has part number `ep_rank` of `ep` equal parts of each layer's experts.
  /// @{
  int ep = 1, ep_rank = 0;
  /// @}
};

/// The whole model as one part.
ModelPart whole_model(const GptConfig& config);

/// The tensors of a part, whole, in the order of the layers, each with the dimension that TP cuts: of two matrices in a
/// row the first by rows and the second by columns, embedding and output layer by rows, norms and routers not at all.
/// Keys and values are not cut where there are fewer of their heads than `tp` ranks. Vectors are one row.
std::vector<Parameter> part_parameters(const GptConfig& config, const ModelPart& part, int tp = 1);

/// Those of the whole model.
std::vector<Parameter> gpt_parameters(const GptConfig& config, int tp = 1);

/// What one TP rank holds of a tensor before the first step, from random numbers that belong to the tensor's name: the
/// whole tensor where `tp` is 1. Gains are 1; matrices have a standard deviation of 0.02, and those that write into the
/// residual stream 0.02 / √(2 · layers) (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019,
/// section 2.3).
Matrix first_weights(const GptConfig& config, const Parameter& parameter, std::uint64_t seed, int tp = 1,
                     int tp_rank = 0);

}  // namespace muonwalk
