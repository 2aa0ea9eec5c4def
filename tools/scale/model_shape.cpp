#include "tools/scale/model_shape.hpp"

#include <algorithm>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

// Dense models like Llama, with as many heads for keys as for queries. Tied below a feed-forward width of 10,000.
ModelConfiguration playbook_model(const char* name, Index layers, Index width, Index heads, Index feed_forward) {
  ModelConfiguration model{name, 131072, width, layers, heads, heads, width / heads, feed_forward};
  model.tied = feed_forward < 10000;
  model.source = "huggingface/nanotron, scripts/scaling_benchmarks.py; checked against the speeds of its runs";
  return model;
}

// Narayanan's and Korthikanti's GPTs: 2,048 positions, a feed-forward width of four times the model's.
ModelConfiguration megatron_model(const char* name, Index layers, Index width, Index heads) {
  ModelConfiguration model{name, 51200, width, layers, heads, heads, width / heads, 4 * width, 2048, true};
  model.source = "Korthikanti et al., 'Reducing Activation Recomputation in Large Transformer Models', 2022, table 3";
  return model;
}

// Whose batch is taken for a model, unless another one is asked for.
struct TrainedBatch {
  const char* model;
  Index tokens;
  const char* source;
};
constexpr const char* kPlaybook = "the runs of the Ultra-Scale Playbook have";
constexpr TrainedBatch kTrainedBatches[] = {
    {"gpt2", 524'288, "GPT-3's smallest has (arXiv 2005.14165, table 2.1)"},
    {"llama-7b", 4'194'304, "LLaMA has (arXiv 2302.13971, table 2)"},
    {"moonlight-16b", 33'554'432, "Moonlight has after its first 200 B tokens (arXiv 2502.16982)"},
    {"qwen3-30b", 524'288, "about follows from the FLOPs that NVIDIA published of its runs (Megatron-Bridge 26.02)"},
    {"kimi-k2", 67'108'864, "Kimi K2 has (arXiv 2507.20534, section 2.5)"},
    {"llama-3-70b", 4'194'304, "Llama 2 70B has (arXiv 2307.09288, table 1)"},
    {"1B", 1'048'576, kPlaybook},
    {"3B", 1'048'576, kPlaybook},
    {"8B", 1'048'576, kPlaybook},
    {"80B", 1'048'576, kPlaybook},
    {"megatron-22b", 2'097'152, "the GPT of 18.4 B parameters has (arXiv 2104.04473, table 1)"},
    {"megatron-175b", 3'145'728, "GPT-3 has (arXiv 2005.14165, table 2.1)"},
    {"megatron-530b", 3'932'160, "Megatron-Turing NLG has (arXiv 2201.11990)"},
    {"megatron-1t", 6'291'456, "the GPT of 1 T parameters has (arXiv 2104.04473, table 1)"}};

ModelShape shape_of(const ModelConfiguration& model, Index tokens) {
  ModelShape shape{model};
  if (model.experts.count == 0)
    shape.hidden = model.feed_forward;
  else
    shape.hidden = (model.experts.chosen + model.experts.shared) * model.experts.feed_forward;
  shape.tokens = tokens;
  for (const TrainedBatch& each : kTrainedBatches)
    if (model.name == each.model) shape.batch_tokens = each.tokens, shape.batch_source = each.source;
  shape.tied = model.tied || model.like_gpt2;
  for (const ModelTensor& tensor : model_tensors(model)) {
    const auto same = [&tensor](const TensorClass& each) {
      return each.shape == tensor.parameter.shape && each.tp_split_dim == tensor.parameter.tp_split_dim &&
             each.kind == tensor.kind;
    };
    const auto found = std::find_if(shape.tensors.begin(), shape.tensors.end(), same);
    if (found != shape.tensors.end())
      ++found->count;
    else
      shape.tensors.push_back({tensor.parameter.shape, tensor.parameter.tp_split_dim, tensor.kind, 1});
  }
  return shape;
}

// How long the sequences are that a published model is reckoned with here.
Index training_tokens(const std::string& name) { return name == "gpt2" ? 1024 : 4096; }

std::vector<ModelShape> all_shapes() {
  std::vector<ModelShape> shapes;
  for (const std::string& name : model_names())
    shapes.push_back(shape_of(model_configuration(name), training_tokens(name)));
  for (const ModelConfiguration& model :
       {playbook_model("1B", 16, 2048, 32, 8192), playbook_model("3B", 28, 3072, 32, 8192),
        playbook_model("8B", 32, 4096, 32, 14336), playbook_model("80B", 80, 8192, 64, 28672)})
    shapes.push_back(shape_of(model, 4096));
  for (const ModelConfiguration& model :
       {megatron_model("megatron-22b", 48, 6144, 64), megatron_model("megatron-175b", 96, 12288, 96),
        megatron_model("megatron-530b", 105, 20480, 128), megatron_model("megatron-1t", 128, 25600, 160)})
    shapes.push_back(shape_of(model, 2048));
  return shapes;
}

const std::vector<ModelShape>& known_shapes() {
  static const std::vector<ModelShape> all = all_shapes();
  return all;
}

template <class Wanted>
double elements_of(const ModelShape& model, const Wanted& wanted) {
  double sum = 0;
  for (const TensorClass& each : model.tensors)
    if (wanted(each)) sum += each.elements() * static_cast<double>(each.count);
  return sum;
}

}  // namespace

double ModelShape::parameters() const {
  return elements_of(*this, [](const TensorClass&) { return true; });
}

double ModelShape::muon_parameters() const {
  return elements_of(*this, [](const TensorClass& each) {
    return each.kind == TensorKind::hidden || each.kind == TensorKind::expert;
  });
}

std::vector<std::string> model_shape_names() {
  std::vector<std::string> names;
  for (const ModelShape& each : known_shapes()) names.push_back(each.name);
  return names;
}

const ModelShape& model_shape(const std::string& name) {
  const auto& all = known_shapes();
  const auto found =
      std::find_if(all.begin(), all.end(), [&name](const ModelShape& each) { return each.name == name; });
  if (found != all.end()) return *found;
  throw UsageError("the model " + in_quotes(name) + " is not known; it is " + alternatives(model_shape_names()));
}

}  // namespace muonwalk::sim
