#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "src/model/gpt.hpp"
#include "tests/cases.hpp"
#include "tests/model/gpt_in_doubles.hpp"
#include "tests/model/model_case.hpp"
#include "tests/optim/random_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// (loss(w + h·v) − loss(w − h·v)) / 2h, with w one of the tensors.
double slope(GptInDoubles& model, GptInDoubles::Tensors& tensors, const std::string& name,
             const std::vector<std::pair<std::size_t, double>>& direction) {
  constexpr double kStep = 1e-4;
  std::vector<double>& tensor = tensors.at(name);
  const std::vector<double> kept = tensor;
  double loss[2] = {};
  for (const int side : {0, 1}) {
    for (const auto& [at, length] : direction) tensor[at] = kept[at] + (side == 0 ? -kStep : kStep) * length;
    loss[side] = model.loss(tensors);
  }
  tensor = kept;
  return (loss[1] - loss[0]) / (2 * kStep);
}

double norm(const Matrix& x) {
  double squares = 0;
  for (const float value : x.flat()) squares += static_cast<double>(value) * value;
  return std::sqrt(squares);
}

// Float32 gradients of such models are off by some 1e-6 of the largest elements of a tensor; the differences by 1e-8.
void check_gradients(const ModelCase& c) {
  INFO(c.text());
  require_sensible(c.config);
  const std::vector<Matrix> weights = c.weights();
  const std::vector<Parameter> parameters = gpt_parameters(c.config);
  const PartGradients leaf =
      serial_leaf(c.config, part_tensors(c.config, whole_model(c.config), 1, weights), c.batch(), c.scale());
  GptInDoubles model(c.config, c.batch());
  GptInDoubles::Tensors tensors = in_doubles(c.config, weights);
  const double loss = model.loss(tensors);
  CHECK(std::abs(static_cast<double>(leaf.loss) * c.scale() - loss) < 1e-5 * loss);
  CHECK(std::abs(serial_loss(c.config, part_tensors(c.config, whole_model(c.config), 1, weights), c.batch()) - loss) <
        1e-5 * loss);

  REQUIRE(leaf.gradients.size() == parameters.size());
  Choices choose(c.seed + 1);
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    INFO(parameters[p].name);
    const Matrix& gradient = leaf.gradients[p];
    REQUIRE(gradient.rows() == parameters[p].shape.rows);
    REQUIRE(gradient.cols() == parameters[p].shape.cols);
    const double close = 1e-4 * norm(gradient) + 1e-8;
    // Every element of a small tensor, or some of them.
    const Index some = std::min<Index>(gradient.size(), 16);
    for (Index i = 0; i < some; ++i) {
      const auto at = static_cast<std::size_t>(some == gradient.size() ? i : choose.between(0, gradient.size() - 1));
      INFO("element " << at);
      CHECK(std::abs(slope(model, tensors, parameters[p].name, {{at, 1.0}}) - gradient.flat()[at]) < close);
    }
    // And all of them at once, in two directions of length 1 in which no element is left out.
    for (int times = 0; times < 2; ++times) {
      std::vector<std::pair<std::size_t, double>> direction;
      double along = 0;
      for (std::size_t at = 0; at < gradient.flat().size(); ++at) {
        const double length = (choose.yes(50) ? 1 : -1) / std::sqrt(static_cast<double>(gradient.size()));
        direction.emplace_back(at, length);
        along += length * gradient.flat()[at];
      }
      CHECK(std::abs(slope(model, tensors, parameters[p].name, direction) - along) < close);
    }
  }
}

ModelCase sized(std::uint64_t seed, Index heads, Index kv_heads, Index pieces, Index tokens) {
  ModelCase c;
  c.seed = seed;
  c.config.vocabulary = 4 * pieces;
  c.config.width = 4 * heads;
  c.config.heads = heads;
  c.config.kv_heads = kv_heads;
  c.config.hidden = 3 * pieces;
  c.config.tokens = tokens;
  c.config.pieces = pieces;
  return c;
}

}  // namespace

TEST_CASE("model: loss and gradients are those of a plain GPT in double precision") {
  SUBCASE("every query head with keys and values of its own") { check_gradients(sized(1, 4, 4, 2, 9)); }
  SUBCASE("fewer heads of keys and values than pieces") { check_gradients(sized(2, 8, 2, 4, 12)); }
  SUBCASE("more heads of keys and values than pieces") { check_gradients(sized(3, 8, 4, 2, 12)); }
  SUBCASE("one head of keys and values") { check_gradients(sized(4, 4, 1, 4, 5)); }
  SUBCASE("a number of pieces that is not a power of two") { check_gradients(sized(5, 6, 3, 6, 8)); }
  SUBCASE("sequences longer than a block of queries") { check_gradients(sized(6, 2, 1, 1, 131)); }
  SUBCASE("the output layer is the embedding") {
    ModelCase c = sized(7, 4, 2, 4, 10);
    c.config.tied = true;
    c.sequences = 3;
    check_gradients(c);
  }
  SUBCASE("four experts, some of them full, of which a token chooses one or two") {
    for (const Index chosen : {1, 2}) {
      ModelCase c = sized(8, 4, 2, 2, 12);
      c.config.experts = 4;
      c.config.chosen = chosen;
      check_gradients(c);
    }
  }
}

TEST_CASE("model: and so are those of random models") {
  for (std::uint64_t seed = 100; seed < 100 + testing::cases(10); ++seed) check_gradients(random_model(seed, 4));
}

TEST_CASE("model: a loss counts as often as the scale says") {
  const ModelCase c = sized(9, 4, 2, 2, 6);
  const PartTensors tensors = part_tensors(c.config, whole_model(c.config), 1, c.weights());
  const PartGradients once = serial_leaf(c.config, tensors, c.batch(), 0.25f);
  const PartGradients four_times = serial_leaf(c.config, tensors, c.batch(), 1.0f);
  CHECK(once.loss == four_times.loss);
  for (std::size_t p = 0; p < once.gradients.size(); ++p)
    for (Index i = 0; i < once.gradients[p].size(); ++i)
      CHECK(4 * once.gradients[p].data()[i] == four_times.gradients[p].data()[i]);
}

TEST_CASE("model: what may come next does not depend on what would follow, and is what the loss looked at") {
  ModelCase c = sized(10, 4, 2, 2, 6);
  c.config.vocabulary = 10;
  const PartTensors tensors = part_tensors(c.config, whole_model(c.config), 1, c.weights());
  const std::vector<std::int32_t> all = {3, 1, 4, 1, 5, 9};
  double sum = 0;
  for (std::size_t count = 1; count <= all.size(); ++count) {
    const Matrix logits =
        next_logits(c.config, tensors, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(count)});
    REQUIRE(logits.cols() == c.config.vocabulary);
    double total = 0;
    for (const float logit : logits.flat()) total += std::exp(static_cast<double>(logit));
    const std::size_t target = static_cast<std::size_t>(all[count % all.size()]);
    sum += std::log(total) - logits.flat()[target];
  }
  const float loss = serial_loss(c.config, tensors, {all, {1, 4, 1, 5, 9, 3}});
  CHECK(std::abs(sum / 6 - loss) < 1e-5);
  CHECK_THROWS_WITH(next_logits(c.config, tensors, {}), "a model can go on after 1 to 6 tokens, not 0");
  CHECK_THROWS_WITH(next_logits(c.config, tensors, {1, 2, 3, 4, 5, 6, 7}),
                    "a model can go on after 1 to 6 tokens, not 7");
}
