#pragma once

#include <string>
#include <vector>

#include "src/layout/parameter.hpp"

namespace muonwalk {

/// What a tensor of a model is for, which decides who updates it: Muon takes `hidden` and `expert`, AdamW the rest.
enum class TensorKind {
  hidden,     ///< a matrix inside of the layers
  expert,     ///< the same, of one of the experts that a router chooses from
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

/// The models whose tensors are known: "gpt2", "llama-7b", "moonlight-16b", "qwen3-30b", "kimi-k2", "llama-3-70b".
std::vector<std::string> model_names();

/// All tensors of a published model, in the order of its layers, worked out from a dozen numbers of its configuration
/// (published_models.cpp names the source of each). They are for planning: nobody needs its weights. Throws UsageError
/// for a name that is not among model_names.
std::vector<ModelTensor> model_tensors(const std::string& name);

/// Those of them that Muon takes: `hidden` and `expert`.
std::vector<Parameter> model_parameters(const std::string& name);

/// The elements at which Megatron-LM closes a bucket unless told otherwise: max(40,000,000, 1,000,000 · dp)
/// (megatron/core/distributed/distributed_data_parallel.py).
Index megatron_bucket(int dp);

}  // namespace muonwalk
