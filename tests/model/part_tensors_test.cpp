#include "src/model/part_tensors.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "src/layout/slicing.hpp"
#include "tests/model/model_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

TEST_CASE("part_tensors: tensors come back in the order in which they were given") {
  for (std::uint64_t seed = 1; seed < 12; ++seed) {
    const ModelCase c = random_model(seed, 4);
    INFO(c.text());
    const std::vector<Matrix> weights = c.weights();
    const std::vector<Matrix> back = listed(part_tensors(c.config, whole_model(c.config), 1, weights));
    REQUIRE(back.size() == weights.size());
    for (std::size_t p = 0; p < back.size(); ++p) CHECK(same_bits(back[p], weights[p]));
    const std::vector<Matrix> zeros = listed(zeros_like(part_tensors(c.config, whole_model(c.config), 1, weights)));
    REQUIRE(zeros.size() == weights.size());
    for (std::size_t p = 0; p < zeros.size(); ++p)
      CHECK(same_bits(zeros[p], Matrix(weights[p].rows(), weights[p].cols())));
  }
}

TEST_CASE("part_tensors: tensors of other shapes or another number are refused") {
  GptConfig config;
  config.layers = 1;
  std::vector<Matrix> tensors;
  for (const Parameter& p : gpt_parameters(config, 2)) {
    const Shape shape = tp_shape(p, 2);
    tensors.emplace_back(shape.rows, shape.cols);
  }
  const auto refuse = [&](std::vector<Matrix> given, const char* sentence) {
    CHECK_THROWS_WITH_AS(part_tensors(config, whole_model(config), 2, std::move(given)), sentence,
                         std::invalid_argument);
  };
  part_tensors(config, whole_model(config), 2, tensors);
  std::vector<Matrix> fewer(tensors.begin(), tensors.end() - 1), more = tensors, other = tensors;
  more.emplace_back(1, 1);
  other[5] = Matrix(64, 64);
  refuse(fewer, "a part of a model with 12 tensors was given 11");
  refuse(more, "a part of a model with 12 tensors was given 13");
  refuse(other, "model.layers.0.self_attn.o_proj.weight is 64 × 64, not 64 × 32");
  other = tensors;
  other[1] = Matrix(64, 1);
  refuse(other, "model.layers.0.input_layernorm.weight is 64 × 1, not 1 × 64");
  other[1] = Matrix(2, 64);
  refuse(other, "model.layers.0.input_layernorm.weight is 2 × 64, not 1 × 64");
  other[1] = Matrix(1, 63);
  refuse(other, "model.layers.0.input_layernorm.weight is 1 × 63, not 1 × 64");
}
