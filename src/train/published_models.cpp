#include "src/train/published_models.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/errors.hpp"
#include "src/text/names.hpp"
#include "src/train/muonwalk_train_texts.hpp"

namespace muonwalk {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LatentAttention, query_rank, rank, position, value)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RoutedExperts, dense_layers, count, chosen, feed_forward, shared, bias)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ModelConfiguration, name, planned, vocabulary, width, layers, heads, key_value_heads,
                                   head, feed_forward, positions, like_gpt2, head_norms, latent, experts, tied, tokens,
                                   batch_tokens, batch_source, source)

namespace {

// Lists the tensors of one model, in the order of its layers.
class TensorList {
 public:
  explicit TensorList(const ModelConfiguration& model) : model_(model) {}

  std::vector<ModelTensor> all() {
    matrix("embedding", model_.vocabulary, model_.width, SplitDim::rows, TensorKind::embedding);
    if (model_.positions > 0)
      matrix("position_embedding", model_.positions, model_.width, SplitDim::none, TensorKind::embedding);
    for (Index layer = 0; layer < model_.layers; ++layer) {
      prefix_ = "layer" + std::to_string(layer) + ".";
      norm("attention_norm");
      attention();
      norm("feed_forward_norm");
      if (model_.experts.count > 0 && layer >= model_.experts.dense_layers)
        experts();
      else
        feed_forward("", model_.feed_forward, TensorKind::hidden);
    }
    prefix_.clear();
    norm("norm");
    if (!model_.like_gpt2 && !model_.tied)
      matrix("lm_head", model_.vocabulary, model_.width, SplitDim::rows, TensorKind::output);
    return std::move(tensors_);
  }

 private:
  void matrix(const std::string& name, Index rows, Index cols, SplitDim split, TensorKind kind = TensorKind::hidden) {
    tensors_.push_back({{prefix_ + name, {rows, cols}, split, 0, kind == TensorKind::vector ? 1 : 2}, kind});
  }
  void vector(const std::string& name, Index size, SplitDim split = SplitDim::none) {
    matrix(name, 1, size, split, TensorKind::vector);
  }
  void norm(const std::string& name) {
    vector(name, model_.width);
    if (model_.like_gpt2) vector(name + "_bias", model_.width);
  }
  // A matrix with the bias that goes with it. One that is cut by rows gives each rank a part of the result, so its bias
  // is cut too; one that is cut by columns gives each a part of the sum, to which the bias is added once.
  void linear(const std::string& name, Index rows, Index cols, SplitDim split, TensorKind kind = TensorKind::hidden) {
    matrix(name, rows, cols, split, kind);
    if (model_.like_gpt2) vector(name + "_bias", rows, split == SplitDim::rows ? SplitDim::columns : SplitDim::none);
  }

  void attention() {
    const Index width = model_.width, heads = model_.heads, head = model_.head;
    if (model_.latent.rank > 0) return latent_attention();
    if (model_.like_gpt2) {
      linear("wqkv", 3 * heads * head, width, SplitDim::rows);
    } else {
      linear("wq", heads * head, width, SplitDim::rows);
      linear("wk", model_.key_value_heads * head, width, SplitDim::rows);
      linear("wv", model_.key_value_heads * head, width, SplitDim::rows);
    }
    if (model_.head_norms) {
      vector("q_norm", head);
      vector("k_norm", head);
    }
    linear("wo", width, heads * head, SplitDim::columns);
  }

  void latent_attention() {
    const auto& [query_rank, rank, position, value] = model_.latent;
    const Index width = model_.width, heads = model_.heads, queries = heads * (model_.head + position);
    if (query_rank > 0) {
      matrix("wq_down", query_rank, width, SplitDim::none);
      vector("q_norm", query_rank);
      matrix("wq_up", queries, query_rank, SplitDim::rows);
    } else {
      matrix("wq", queries, width, SplitDim::rows);
    }
    matrix("wkv_down", rank + position, width, SplitDim::none);
    vector("kv_norm", rank);
    matrix("wkv_up", heads * (model_.head + value), rank, SplitDim::rows);
    matrix("wo", width, heads * value, SplitDim::columns);
  }

  void feed_forward(const std::string& name, Index inner, TensorKind kind) {
    if (!model_.like_gpt2) linear(name + "gate", inner, model_.width, SplitDim::rows, kind);
    linear(name + "up", inner, model_.width, SplitDim::rows, kind);
    linear(name + "down", model_.width, inner, SplitDim::columns, kind);
  }

  void experts() {
    const RoutedExperts& experts = model_.experts;
    matrix("router", experts.count, model_.width, SplitDim::none);
    if (experts.bias) vector("router_bias", experts.count);
    if (experts.shared > 0) feed_forward("shared.", experts.shared * experts.feed_forward, TensorKind::hidden);
    for (Index e = 0; e < experts.count; ++e)
      feed_forward("expert" + std::to_string(e) + ".", experts.feed_forward, TensorKind::expert);
  }

  const ModelConfiguration& model_;
  std::string prefix_;
  std::vector<ModelTensor> tensors_;
};

}  // namespace

const std::vector<ModelConfiguration>& known_models() {
  static const std::vector<ModelConfiguration> all = nlohmann::json::parse(sim::page_texts::models);
  return all;
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const ModelConfiguration& each : known_models())
    if (each.planned) names.push_back(each.name);
  return names;
}

const ModelConfiguration& model_configuration(const std::string& name) {
  for (const ModelConfiguration& each : known_models())
    if (each.planned && each.name == name) return each;
  throw UsageError("--model " + as_typed(name) + " is not known; it is " + alternatives(model_names()));
}

std::vector<ModelTensor> model_tensors(const ModelConfiguration& model) { return TensorList(model).all(); }

std::vector<ModelTensor> model_tensors(const std::string& name) { return model_tensors(model_configuration(name)); }

std::vector<Parameter> model_parameters(const std::string& name) {
  std::vector<Parameter> parameters;
  for (ModelTensor& tensor : model_tensors(name))
    if (tensor.kind == TensorKind::hidden || tensor.kind == TensorKind::expert)
      parameters.push_back(std::move(tensor.parameter));
  return parameters;
}

Index megatron_bucket(int dp) { return std::max<Index>(40000000, Index{1000000} * dp); }

}  // namespace muonwalk
