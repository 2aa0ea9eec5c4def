// The tensors of real models, against the totals that were published of them.
#include "src/train/published_models.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/errors.hpp"
#include "src/layout/buffer.hpp"
#include "src/optim/parameter_groups.hpp"

using namespace muonwalk;

namespace {

Index elements(const std::string& model, std::set<TensorKind> kinds) {
  Index sum = 0;
  for (const ModelTensor& tensor : model_tensors(model))
    if (kinds.count(tensor.kind) > 0) sum += tensor.parameter.shape.size();
  return sum;
}

const std::set<TensorKind> kAll = {TensorKind::hidden, TensorKind::expert, TensorKind::embedding, TensorKind::output,
                                   TensorKind::vector};

Parameter tensor(const std::string& model, const std::string& name) {
  for (const ModelTensor& each : model_tensors(model))
    if (each.parameter.name == name) return each.parameter;
  FAIL(model, " has no ", name);
  return {};
}

}  // namespace

TEST_CASE("model_tensors: as many elements as were published") {
  // What the safetensors files on huggingface.co hold, as their pages count it. Two of them hold a few thousand numbers
  // that belong to none of the tensors of the models' own code: 64 and 56 for each layer.
  const std::map<std::string, Index> published = {{"gpt2", 124'439'808},
                                                  {"llama-7b", 6'738'415'616},
                                                  {"moonlight-16b", 15'960'111'936 - 27 * 64},
                                                  {"qwen3-30b", 30'532'122'624},
                                                  {"kimi-k2", 1'026'408'235'864 - 61 * 56},
                                                  {"llama-3-70b", 70'553'706'496}};
  const std::vector<std::string> names = model_names();
  CHECK(names.size() == published.size());
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(elements(name, kAll) == published.at(name));
  }
  // "15.29B", without the embeddings: "Muon is Scalable for LLM Training", table 4.
  CHECK(elements("moonlight-16b", {TensorKind::hidden, TensorKind::expert, TensorKind::vector}) / 10'000'000 == 1528);
  // 98.9 % of Kimi K2 is in its experts. (Its report says 1.04T in all, 1.3 % more than its files hold.)
  CHECK(elements("kimi-k2", {TensorKind::expert}) == Index{60} * 384 * 3 * 7168 * 2048);
}

TEST_CASE("model_tensors: one of each kind, with its shape and what TP cuts") {
  const auto is = [](const Parameter& p, Shape shape, SplitDim split) {
    return p.shape == shape && p.tp_split_dim == split;
  };
  CHECK(is(tensor("gpt2", "embedding"), {50257, 768}, SplitDim::rows));
  CHECK(is(tensor("gpt2", "position_embedding"), {1024, 768}, SplitDim::none));
  CHECK(is(tensor("gpt2", "layer11.wqkv"), {2304, 768}, SplitDim::rows));
  CHECK(is(tensor("gpt2", "layer0.wqkv_bias"), {1, 2304}, SplitDim::columns));
  CHECK(is(tensor("gpt2", "layer0.down"), {768, 3072}, SplitDim::columns));
  CHECK(is(tensor("gpt2", "layer0.down_bias"), {1, 768}, SplitDim::none));
  CHECK(is(tensor("qwen3-30b", "layer47.wk"), {512, 2048}, SplitDim::rows));
  CHECK(is(tensor("qwen3-30b", "layer0.expert127.down"), {2048, 768}, SplitDim::columns));
  CHECK(is(tensor("moonlight-16b", "layer0.gate"), {11264, 2048}, SplitDim::rows));
  CHECK(is(tensor("moonlight-16b", "layer1.wq"), {3072, 2048}, SplitDim::rows));
  CHECK(is(tensor("moonlight-16b", "layer1.shared.up"), {2816, 2048}, SplitDim::rows));
  CHECK(is(tensor("kimi-k2", "layer60.wq_down"), {1536, 7168}, SplitDim::none));
  CHECK(is(tensor("kimi-k2", "layer60.wq_up"), {12288, 1536}, SplitDim::rows));
  CHECK(is(tensor("kimi-k2", "layer60.wkv_down"), {576, 7168}, SplitDim::none));
  CHECK(is(tensor("kimi-k2", "layer60.wkv_up"), {16384, 512}, SplitDim::rows));
  CHECK(is(tensor("kimi-k2", "layer60.router"), {384, 7168}, SplitDim::none));
  CHECK(is(tensor("kimi-k2", "lm_head"), {163840, 7168}, SplitDim::rows));
  CHECK(is(tensor("llama-3-70b", "layer79.wv"), {1024, 8192}, SplitDim::rows));
  CHECK(is(tensor("llama-3-70b", "layer0.wo"), {8192, 8192}, SplitDim::columns));
  CHECK(is(tensor("llama-3-70b", "layer79.gate"), {28672, 8192}, SplitDim::rows));
}

TEST_CASE("model_tensors: names are distinct, vectors have one row, and Muon takes the matrices inside of the layers") {
  for (const std::string& name : model_names()) {
    CAPTURE(name);
    const std::vector<ModelTensor> all = model_tensors(name);
    std::set<std::string> names;
    std::vector<std::string> muons;
    for (const ModelTensor& each : all) {
      names.insert(each.parameter.name);
      const bool in_layer = each.parameter.name.find("layer") == 0, vector = each.parameter.shape.rows == 1;
      CHECK((each.kind == TensorKind::vector) == vector);
      CHECK(each.parameter.dims == (vector ? 1 : 2));
      CHECK((each.kind == TensorKind::expert) == (each.parameter.name.find(".expert") != std::string::npos));
      if (in_layer && !vector) muons.push_back(each.parameter.name);
    }
    CHECK(names.size() == all.size());
    const std::vector<Parameter> parameters = model_parameters(name);
    CHECK(std::equal(parameters.begin(), parameters.end(), muons.begin(), muons.end(),
                     [](const Parameter& p, const std::string& of) { return p.name == of; }));
    CHECK_NOTHROW(plan_layout(parameters, Grid().dp(8).tp(4)));
    // The usual groups (parameter_groups.hpp), which go by names and dimensions, come to the same.
    std::vector<Parameter> routed;
    for (const ModelTensor& each : all) routed.push_back(each.parameter);
    routed = route(std::move(routed), usual_groups({}, {}));
    for (std::size_t t = 0; t < all.size(); ++t)
      CHECK((routed[t].group == 0) == (all[t].kind == TensorKind::hidden || all[t].kind == TensorKind::expert));
  }
}

TEST_CASE("model_parameters: a model that is not known is refused with the names of those that are") {
  CHECK_THROWS_WITH_AS(model_parameters("gpt"),
                       "--model gpt is not known; it is gpt2, llama-7b, moonlight-16b, qwen3-30b, kimi-k2 or "
                       "llama-3-70b",
                       UsageError);
}

TEST_CASE("model_tensors: where the output layer is the embedding once more, there is no other") {
  ModelConfiguration model = model_configuration("llama-7b");
  model.layers = 1;
  const std::vector<ModelTensor> untied = model_tensors(model);
  model.tied = true;
  const std::vector<ModelTensor> tied = model_tensors(model);
  REQUIRE(untied.size() == tied.size() + 1);
  CHECK(untied.back().parameter.name == "lm_head");
  CHECK(untied.back().kind == TensorKind::output);
  CHECK(tied.back().parameter.name == "norm");
}
