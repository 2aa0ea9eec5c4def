#include "src/train/models.hpp"

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk {

std::vector<Parameter> proof_of_concept_parameters() {
  return {{"w0", {100, 100}, SplitDim::rows, 0},
          {"w1", {124, 324}, SplitDim::columns, 0},
          {"w2", {456, 124}, SplitDim::none, 0},
          {"w3", {676, 876}, SplitDim::columns, 0},
          {"w4", {128, 128}, SplitDim::rows, 0}};
}

std::vector<Parameter> small_parameters() {
  std::vector<Parameter> parameters = proof_of_concept_parameters();
  const Shape shapes[] = {{12, 12}, {16, 40}, {56, 16}, {84, 108}, {16, 16}};
  for (std::size_t p = 0; p < parameters.size(); ++p) parameters[p].shape = shapes[p];
  return parameters;
}

Range stage_parameters(int parameters, int stages, int stage) {
  return {Index{parameters} * stage / stages, Index{parameters} * (stage + 1) / stages};
}

std::vector<Parameter> model_parameters(const std::string& name) {
  if (name != "llama-3-70b") throw UsageError("--model " + as_typed(name) + " is not known; it is llama-3-70b");
  constexpr Index kWidth = 8192, kKeysAndValues = 8 * 128, kFeedForward = 28672;
  std::vector<Parameter> parameters;
  for (int layer = 0; layer < 80; ++layer)
    for (const Parameter& matrix : std::vector<Parameter>{{"wq", {kWidth, kWidth}, SplitDim::rows},
                                                          {"wk", {kKeysAndValues, kWidth}, SplitDim::rows},
                                                          {"wv", {kKeysAndValues, kWidth}, SplitDim::rows},
                                                          {"wo", {kWidth, kWidth}, SplitDim::columns},
                                                          {"gate", {kFeedForward, kWidth}, SplitDim::rows},
                                                          {"up", {kFeedForward, kWidth}, SplitDim::rows},
                                                          {"down", {kWidth, kFeedForward}, SplitDim::columns}}) {
      parameters.push_back(matrix);
      parameters.back().name = "layer" + std::to_string(layer) + "." + matrix.name;
    }
  return parameters;
}

}  // namespace muonwalk
