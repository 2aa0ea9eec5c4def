#include "src/train/models.hpp"

namespace muonwalk {

std::vector<Parameter> proof_of_concept_parameters() {
  return {{"w0", {100, 100}, SplitDim::rows, 0},
          {"w1", {124, 324}, SplitDim::columns, 0},
          {"w2", {456, 124}, SplitDim::none, 0},
          {"w3", {676, 876}, SplitDim::columns, 0},
          {"w4", {128, 128}, SplitDim::rows, 0}};
}

namespace {

// The proof of concept's, cut as there, in other shapes.
std::vector<Parameter> in_shapes(const std::vector<Shape>& shapes) {
  std::vector<Parameter> parameters = proof_of_concept_parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) parameters[p].shape = shapes[p];
  return parameters;
}

}  // namespace

std::vector<Parameter> small_parameters() { return in_shapes({{12, 12}, {16, 40}, {56, 16}, {84, 108}, {16, 16}}); }

std::vector<Parameter> published_run_parameters() {
  return in_shapes({{4096, 4096}, {1024, 324}, {456, 1024}, {676, 876}, {128, 128}});
}

std::vector<Parameter> small_published_run_parameters() {
  return in_shapes({{256, 256}, {64, 20}, {28, 64}, {42, 54}, {8, 8}});
}

Range stage_parameters(int parameters, int stages, int stage) {
  return {Index{parameters} * stage / stages, Index{parameters} * (stage + 1) / stages};
}

}  // namespace muonwalk
