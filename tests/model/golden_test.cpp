#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "src/model/gpt.hpp"

using namespace muonwalk;

namespace {

// As tests/golden/make_gpt.py has it: 24 bits of a product of integers, between −1/2 and 1/2.
float fraction(std::uint32_t tensor, std::uint32_t element) {
  std::uint32_t mixed = element * 2654435761u + (tensor + 1) * 2246822519u;
  mixed = (mixed ^ (mixed >> 15)) * 3266489917u;
  mixed ^= mixed >> 13;
  return static_cast<float>(mixed >> 8) / 16777216.0f - 0.5f;
}

float next_number(std::istream& in) {
  std::uint32_t bits = 0;
  in >> std::hex >> bits;
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void expect_as_in_torch(const std::string& name, const GptConfig& config, Index sequences) {
  INFO(name);
  require_sensible(config);
  std::vector<Matrix> weights;
  for (const Parameter& p : gpt_parameters(config)) {
    Matrix tensor(p.shape.rows, p.shape.cols);
    for (Index i = 0; i < tensor.size(); ++i) {
      const float value = fraction(static_cast<std::uint32_t>(weights.size()), static_cast<std::uint32_t>(i));
      tensor.data()[i] = p.dims == 2 ? value : 1 + value / 2;
    }
    weights.push_back(std::move(tensor));
  }
  MicroBatch batch;
  const Index rows = sequences * config.tokens;
  for (std::uint32_t t = 0; t < rows; ++t)
    for (const std::uint32_t which : {0, 1})
      (which == 0 ? batch.inputs : batch.targets)
          .push_back(
              static_cast<std::int32_t>((fraction(1000 + which, t) + 0.5f) * static_cast<float>(config.vocabulary)));
  const float scale = 1.0f / static_cast<float>(rows);
  const PartGradients leaf = serial_leaf(config, part_tensors(config, whole_model(config), 1, weights), batch, scale);

  std::ifstream in(std::string(MUONWALK_GOLDEN_DIR) + "/gpt_" + name + ".txt");
  CHECK(std::abs(leaf.loss * scale - next_number(in)) < 2e-6);
  for (std::size_t p = 0; p < leaf.gradients.size(); ++p) {
    double off = 0, size = 0;
    for (const float ours : leaf.gradients[p].flat()) {
      const double theirs = static_cast<double>(next_number(in));
      off += (ours - theirs) * (ours - theirs);
      size += theirs * theirs;
    }
    INFO("tensor " << p << ": off by " << std::sqrt(off / size) << " of its norm");
    CHECK(std::sqrt(off) < 2e-6 * std::sqrt(size));
  }
  REQUIRE(in.good());
  std::string more;
  in >> more;
  CHECK(more.empty());
}

}  // namespace

TEST_CASE("model: loss and gradients are those of PyTorch's autograd") {
  GptConfig dense;
  dense.vocabulary = 12;
  dense.width = 16;
  dense.heads = 4;
  dense.kv_heads = 2;
  dense.hidden = 12;
  dense.tokens = 10;
  expect_as_in_torch("dense", dense, 2);
}
