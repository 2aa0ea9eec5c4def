#include "src/model/gpt_config.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/layout/slicing.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/model/model_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

std::string refused(Index GptConfig::*knob, Index value, int tp = 1) {
  GptConfig config;
  config.*knob = value;
  return usage_error([&] { require_sensible(config, tp); });
}

std::vector<std::string> parameter_names(const std::vector<Parameter>& parameters) {
  std::vector<std::string> all;
  for (const Parameter& p : parameters) all.push_back(p.name);
  return all;
}

}  // namespace

TEST_CASE("gpt_config: sizes that make no model are refused by name") {
  require_sensible(GptConfig());
  const std::vector<std::pair<std::string, Index GptConfig::*>> sizes = {
      {"vocabulary", &GptConfig::vocabulary}, {"width", &GptConfig::width},       {"layers", &GptConfig::layers},
      {"heads", &GptConfig::heads},           {"kv_heads", &GptConfig::kv_heads}, {"hidden", &GptConfig::hidden},
      {"tokens", &GptConfig::tokens},         {"pieces", &GptConfig::pieces}};
  for (const auto& [name, size] : sizes)
    for (const Index value : {0, -2})
      CHECK(refused(size, value) == "a model needs " + name + " of at least 1, not " + std::to_string(value));
  CHECK(refused(&GptConfig::width, 66) ==
        "4 heads don't cut a width of 66 into even parts; a head needs an even number of channels");
  CHECK(refused(&GptConfig::width, 60) ==
        "4 heads don't cut a width of 60 into even parts; a head needs an even number of channels");
  CHECK(refused(&GptConfig::kv_heads, 3) ==
        "4 query heads can't share 3 heads of keys and values; their number has to divide 4");
  CHECK(refused(&GptConfig::kv_heads, 8) ==
        "4 query heads can't share 8 heads of keys and values; their number has to divide 4");
  CHECK(refused(&GptConfig::pieces, 8) == "sums of 8 pieces don't go with heads of 4; it has to be a multiple of 8");
  CHECK(refused(&GptConfig::hidden, 129) ==
        "sums of 4 pieces don't go with hidden of 129; it has to be a multiple of 4");
  CHECK(refused(&GptConfig::vocabulary, 255) ==
        "sums of 4 pieces don't go with vocabulary of 255; it has to be a multiple of 4");
  GptConfig config;
  config.width = 72;
  config.heads = 12;
  config.kv_heads = 6;
  CHECK(usage_error([&] { require_sensible(config); }) ==
        "6 heads of keys and values don't go with sums of 4 pieces; one has to divide the other");
}

TEST_CASE("gpt_config: numbers of ranks that can't share a model are refused, with those that can") {
  for (const int tp : {1, 2, 4}) require_sensible(GptConfig(), tp);
  for (const int tp : {-1, 0, 3, 5, 8})
    CHECK(usage_error([&] { require_sensible(GptConfig(), tp); }) ==
          "--tp " + std::to_string(tp) +
              " can't share the 4 pieces of this model's sums in whole subtrees; try --tp 1, 2, 4");
  // Three times a power of two: what is shared by two would not be whole subtrees of a sum of 12.
  GptConfig config;
  config.width = 48;
  config.heads = 12;
  config.kv_heads = 12;
  config.hidden = 12;
  config.vocabulary = 12;
  config.pieces = 12;
  for (const int tp : {1, 3, 6, 12}) require_sensible(config, tp);
  for (const int tp : {2, 4, 5})
    CHECK(usage_error([&] { require_sensible(config, tp); }) ==
          "--tp " + std::to_string(tp) +
              " can't share the 12 pieces of this model's sums in whole subtrees; try --tp 1, 3, 6, 12");
  // Four heads of keys and values: six ranks could neither have whole ones nor whole copies.
  config.kv_heads = 4;
  for (const int tp : {1, 12}) require_sensible(config, tp);
  CHECK(usage_error([&] { require_sensible(config, 6); }) ==
        "--tp 6 can't share the 12 pieces of this model's sums in whole subtrees; try --tp 1, 12");
}

TEST_CASE("gpt_config: tensors have the names of Hugging Face's Llama") {
  GptConfig config;
  config.layers = 1;
  CHECK(parameter_names(gpt_parameters(config)) ==
        std::vector<std::string>{"model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                                 "model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
                                 "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.o_proj.weight",
                                 "model.layers.0.post_attention_layernorm.weight",
                                 "model.layers.0.mlp.gate_proj.weight", "model.layers.0.mlp.up_proj.weight",
                                 "model.layers.0.mlp.down_proj.weight", "model.norm.weight", "lm_head.weight"});
}

TEST_CASE("gpt_config: parts have the tensors of their layers, and the last one what it needs for the loss") {
  GptConfig config;
  config.layers = 3;
  const std::vector<std::string> all = parameter_names(gpt_parameters(config));
  std::vector<std::string> joined;
  for (const ModelPart& part : {ModelPart{{0, 1}, true, false}, {{1, 2}, false, false}, {{2, 3}, false, true}})
    for (const std::string& name : parameter_names(part_parameters(config, part))) joined.push_back(name);
  CHECK(joined == all);
  config.tied = true;
  CHECK(parameter_names(part_parameters(config, {{2, 2}, false, true})) ==
        std::vector<std::string>{"model.norm.weight", "model.embed_tokens.weight"});
  CHECK(parameter_names(part_parameters(config, {{0, 0}, true, true})) ==
        std::vector<std::string>{"model.embed_tokens.weight", "model.norm.weight"});
}

TEST_CASE("gpt_config: keys and values are whole where there are fewer of their heads than ranks") {
  const GptConfig config;  // two heads of them
  for (const int tp : {1, 2, 4})
    for (const Parameter& p : gpt_parameters(config, tp)) {
      if (p.name.find("k_proj") == std::string::npos && p.name.find("v_proj") == std::string::npos) continue;
      CHECK(p.shape == Shape{32, 64});
      CHECK(p.tp_split_dim == (tp == 4 ? SplitDim::none : SplitDim::rows));
    }
}

TEST_CASE("gpt_config: the first weights of a rank are its slices of the whole tensors") {
  for (const bool tied : {false, true}) {
    GptConfig config;
    config.tied = tied;
    const std::vector<Parameter> whole = gpt_parameters(config);
    for (const int tp : {2, 4}) {
      const std::vector<Parameter> cut = gpt_parameters(config, tp);
      for (std::size_t p = 0; p < whole.size(); ++p) {
        const Matrix all = first_weights(config, whole[p], 5);
        for (int rank = 0; rank < tp; ++rank) {
          INFO(cut[p].name << ", rank " << rank << " of " << tp);
          CHECK(same_bits(first_weights(config, cut[p], 5, tp, rank), cut_tensors({cut[p]}, {all}, tp, rank).front()));
        }
      }
    }
  }
}

TEST_CASE("gpt_config: first weights have the deviations of GPT-2, and every tensor and seed its own numbers") {
  GptConfig config;
  config.layers = 8;
  const std::vector<Parameter> parameters = gpt_parameters(config);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    INFO(parameters[p].name);
    const Matrix tensor = first_weights(config, parameters[p], 1);
    if (parameters[p].dims == 1) {
      for (const float gain : tensor.flat()) CHECK(gain == 1.0f);
      continue;
    }
    double sum = 0, squares = 0;
    for (const float value : tensor.flat()) {
      sum += value;
      squares += static_cast<double>(value) * value;
    }
    const auto count = static_cast<double>(tensor.size());
    const std::string& name = parameters[p].name;
    const bool into_residual = name.find("o_proj") != std::string::npos || name.find("down_proj") != std::string::npos;
    const double deviation = into_residual ? 0.02 / 4 : 0.02;
    CHECK(std::abs(sum / count) < 5 * deviation / std::sqrt(count));
    CHECK(std::abs(std::sqrt(squares / count) / deviation - 1) < 5 / std::sqrt(count));
    CHECK_FALSE(same_bits(tensor, first_weights(config, parameters[p], 2)));
    for (std::size_t other = 0; other < p; ++other)
      if (parameters[other].shape == parameters[p].shape && parameters[other].dims == 2) {
        const Matrix theirs = first_weights(config, parameters[other], 1);
        CHECK(tensor(0, 0) / static_cast<float>(deviation) != doctest::Approx(theirs(0, 0) / 0.02f));
        CHECK_FALSE(same_bits(tensor, theirs));
      }
  }
  Parameter stranger = parameters[0];
  stranger.name = "nobody";
  CHECK_THROWS_WITH_AS(first_weights(config, stranger, 1), "the model has no tensor \"nobody\"", std::invalid_argument);
}
