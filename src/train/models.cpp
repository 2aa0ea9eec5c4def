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

std::vector<Parameter> tiny_gpt_parameters() {
  return {{"embed", {12, 8}, SplitDim::rows},   {"q", {8, 8}, SplitDim::rows},
          {"o", {8, 8}, SplitDim::columns},     {"up", {16, 8}, SplitDim::rows},
          {"down", {8, 16}, SplitDim::columns}, {"norm", {1, 8}, SplitDim::none, 0, /*dims=*/1},
          {"lm_head", {12, 8}, SplitDim::rows}};
}

std::vector<Parameter> expert_layers() {
  std::vector<Parameter> layers;
  for (const char* layer : {"0.", "1."}) {
    const auto add = [&](const char* name, Shape shape, SplitDim split) {
      layers.push_back({std::string(layer) + name, shape, split, 0});
    };
    add("wq", {32, 32}, SplitDim::rows);
    add("wk", {16, 32}, SplitDim::rows);
    add("wv", {16, 32}, SplitDim::rows);
    add("wo", {32, 32}, SplitDim::columns);
    add("router", {4, 32}, SplitDim::none);
    add("up", {16, 32}, SplitDim::none);
    add("down", {32, 16}, SplitDim::none);
  }
  return layers;
}

Range stage_parameters(int parameters, int stages, int stage) {
  return {Index{parameters} * stage / stages, Index{parameters} * (stage + 1) / stages};
}

}  // namespace muonwalk
