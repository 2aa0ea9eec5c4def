#include "tools/scale/model_shape.hpp"

#include <algorithm>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

ModelShape shape_of(const ModelConfiguration& model) {
  ModelShape shape{model};
  if (model.experts.count == 0)
    shape.hidden = model.feed_forward;
  else
    shape.hidden = (model.experts.chosen + model.experts.shared) * model.experts.feed_forward;
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

const std::vector<ModelShape>& known_shapes() {
  static const std::vector<ModelShape> all = [] {
    std::vector<ModelShape> shapes;
    for (const ModelConfiguration& model : known_models()) shapes.push_back(shape_of(model));
    return shapes;
  }();
  return all;
}

}  // namespace

double ModelShape::parameters() const {
  double sum = 0;
  for (const TensorClass& each : tensors) sum += each.all_elements();
  return sum;
}

double ModelShape::muon_parameters() const {
  double sum = 0;
  for (const TensorClass& each : tensors) sum += each.muons() ? each.all_elements() : 0;
  return sum;
}

double ModelShape::newton_schulz_flops(int steps) const {
  double sum = 0;
  for (const TensorClass& each : tensors)
    if (each.muons())
      sum += muonwalk::newton_schulz_flops(each.shape.rows, each.shape.cols, steps) * static_cast<double>(each.count);
  return sum;
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
