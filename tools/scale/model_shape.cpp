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

ModelShape shape_of(const ModelConfiguration& model, Index tokens) {
  ModelShape shape{model};
  if (model.experts.count == 0)
    shape.hidden = model.feed_forward;
  else
    shape.hidden = (model.experts.chosen + model.experts.shared) * model.experts.feed_forward;
  shape.tokens = tokens;
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
  std::string known;
  for (const ModelShape& each : all) known += (known.empty() ? "" : &each == &all.back() ? " or " : ", ") + each.name;
  throw UsageError("the model " + in_quotes(name) + " is not known; it is " + known);
}

}  // namespace muonwalk::sim
