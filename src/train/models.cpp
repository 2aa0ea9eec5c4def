#include "src/train/models.hpp"

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

}  // namespace muonwalk
