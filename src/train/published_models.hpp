#pragma once

#include <string>
#include <vector>

#include "src/layout/parameter.hpp"

namespace muonwalk {

/// What a tensor of a model is for, which decides who updates it: Muon takes `hidden` and `expert`, AdamW the rest.
enum class TensorKind {
  hidden,     ///< a matrix inside of the layers
  expert,     ///< A matrix of one of the experts that a router chooses from.
  embedding,  ///< a row per token or position
  output,     ///< the output layer, a row per token, where it is not the embedding once more
  vector      ///< gains, biases: 1-D, here a matrix of one row
};

/// One tensor of a model, with the dimension that TP cuts as Megatron-LM does: of two matrices in a row the first by
/// rows and the second by columns, embedding and output by rows, and nothing of routers, of norms, and of what latent
/// attention shrinks.
struct ModelTensor {
  Parameter parameter;  ///< "layer3.wq"; all in parameter group 0
  TensorKind kind;      ///< what it is for
};

/// Latent attention: queries, keys and values are shrunk before they are multiplied out to the heads.
struct LatentAttention {
  Index query_rank = 0;  ///< q_lora_rank; 0: queries are not shrunk
  Index rank = 0;        ///< kv_lora_rank; 0: the model has no latent attention
  Index position = 0;    ///< qk_rope_head_dim
  Index value = 0;       ///< v_head_dim
};

/// Feed-forward layers that are made of experts, of which a router chooses some for each token.
struct RoutedExperts {
  Index dense_layers = 0;  ///< first_k_dense_replace: layers that have none
  Index count = 0;         ///< n_routed_experts; 0: the model has none
  Index chosen = 0;        ///< num_experts_per_tok
  Index feed_forward = 0;  ///< moe_intermediate_size, of each
  Index shared = 0;        ///< n_shared_experts: as one matrix, that many times as wide
  bool bias = false;       ///< the router corrects its scores with a bias
};

/// A model's sizes. Comments name the entry of its config.json.
struct ModelConfiguration {
  std::string name;             ///< "llama-7b"
  Index vocabulary = 0;         ///< vocab_size
  Index width = 0;              ///< hidden_size
  Index layers = 0;             ///< num_hidden_layers
  Index heads = 0;              ///< num_attention_heads
  Index key_value_heads = 0;    ///< num_key_value_heads
  Index head = 0;               ///< head_dim
  Index feed_forward = 0;       ///< intermediate_size
  Index positions = 0;          ///< n_positions, where positions are learned
  bool like_gpt2 = false;       ///< biases, one matrix for q, k and v, no gate, output = embedding
  bool head_norms = false;      ///< a norm for queries and one for keys
  LatentAttention latent = {};  ///< Its latent attention, where it has that.
  RoutedExperts experts = {};   ///< Its experts, where it has any.
  bool tied = false;            ///< tie_word_embeddings: the output layer is the embedding once more
  std::string source = "";      ///< The pages on which these numbers stand.
  bool planned = false;         ///< Lessons plan steps of it: model_names has it.
  Index tokens = 0;             ///< Tokens in a sequence, as it is reckoned with here.
  Index batch_tokens = 0;       ///< Tokens in a step with which somebody trained a model of this size.
  std::string batch_source;     ///< Who: "LLaMA has (arXiv 2302.13971, table 2)".
};

/// All models of models.json, in its order.
const std::vector<ModelConfiguration>& known_models();

/// Those of them that lessons plan with: "gpt2", "llama-7b", "moonlight-16b", "qwen3-30b", "kimi-k2", "llama-3-70b".
std::vector<std::string> model_names();

/// All tensors of a published model, in the order of its layers, worked out from a dozen numbers of its configuration
/// (models.json names the source of each). They are for planning: nobody needs its weights. Throws UsageError
/// for a name that is not among model_names.
std::vector<ModelTensor> model_tensors(const std::string& name);

/// The sizes that they are worked out from. Throws as they do.
const ModelConfiguration& model_configuration(const std::string& name);
/// The tensors of any model of such sizes.
std::vector<ModelTensor> model_tensors(const ModelConfiguration& model);

/// Those of them that Muon takes: `hidden` and `expert`.
std::vector<Parameter> model_parameters(const std::string& name);

/// The elements at which Megatron-LM closes a bucket unless told otherwise: max(40,000,000, 1,000,000 · dp)
/// (megatron/core/distributed/distributed_data_parallel.py).
Index megatron_bucket(int dp);

}  // namespace muonwalk
