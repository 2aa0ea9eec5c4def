// The matrices of lessons, and of real models: names, shapes, and what TP cuts, as they are kept.
#include "src/train/models.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "src/train/published_models.hpp"
#include "tests/golden/golden_text.hpp"

using namespace muonwalk;

namespace {

std::string parameter_line(const Parameter& p) {
  return fmt::format("  {} {}x{} {} group {} dims {}\n", p.name, p.shape.rows, p.shape.cols, split_name(p.tp_split_dim),
                     p.group, p.dims);
}

// Not the layers between the first two and the last one, nor the experts between the first and the last.
bool stands_for_others(const std::string& name, const ModelConfiguration& model) {
  const auto number_behind = [&name](const std::string& word) {
    const std::size_t at = name.find(word);
    return at == std::string::npos ? Index{0} : Index{std::stol(name.substr(at + word.size()))};
  };
  const Index layer = number_behind("layer"), expert = number_behind("expert");
  return (layer < 2 || layer == model.layers - 1) && (expert == 0 || expert == model.experts.count - 1);
}

}  // namespace

TEST_CASE("models: every matrix of the lessons, and every kind of tensor of real models, are what is kept") {
  std::string text;
  const std::pair<const char*, std::vector<Parameter>> lists[] = {
      {"the proof of concept", proof_of_concept_parameters()},
      {"small", small_parameters()},
      {"the published run", published_run_parameters()},
      {"small, of the published run", small_published_run_parameters()},
      {"a tiny GPT", tiny_gpt_parameters()},
      {"layers of experts", expert_layers()}};
  for (const auto& [name, list] : lists) {
    text += std::string(name) + "\n";
    for (const Parameter& each : list) text += parameter_line(each);
  }
  for (const std::string& name : model_names()) {
    const ModelConfiguration& model = model_configuration(name);
    text +=
        fmt::format("{}, {} of {} experts, from {}\n", name, model.experts.chosen, model.experts.count, model.source);
    for (const ModelTensor& tensor : model_tensors(name))
      if (stands_for_others(tensor.parameter.name, model))
        text += fmt::format("  kind {}", static_cast<int>(tensor.kind)) + parameter_line(tensor.parameter);
  }
  muonwalk::testing::expect_golden("models.txt", text);
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
