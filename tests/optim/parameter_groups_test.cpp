// Who steps which parameter, and what an optimizer made of several is. That its bits and its plan are right on any
// layout is tested with all other optimizers (optimizer_test.cpp).
#include "src/optim/parameter_groups.hpp"

#include <doctest/doctest.h>

#include <set>
#include <stdexcept>

#include "src/optim/full_step.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/random_case.hpp"
#include "tests/optim/rank_fibers.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

Parameter matrix(const std::string& name) { return {name, {8, 4}}; }
Parameter vector(const std::string& name) { return {name, {1, 4}, SplitDim::none, 0, 1}; }

ParameterGroup group(const std::string& name, const Claim& claim) {
  return {name, claim, [] { return std::make_unique<Muon>(MuonSettings()); }};
}

std::vector<int> groups_of(const std::vector<Parameter>& parameters, const std::vector<ParameterGroup>& groups) {
  std::vector<int> numbers;
  for (const Parameter& each : route(parameters, groups)) numbers.push_back(each.group);
  return numbers;
}

}  // namespace

TEST_CASE("usual_groups: the tensors of GPT-2, Llama, its first code and BERT go where people send them") {
  const std::vector<ParameterGroup> groups = usual_groups(MuonSettings(), AdamWSettings());
  for (const char* name : {"h.0.attn.c_attn.weight", "h.11.mlp.c_proj.weight", "model.layers.0.self_attn.q_proj.weight",
                           "model.layers.0.mlp.down_proj.weight", "layers.3.attention.wo.weight", "w0",
                           "bert.encoder.layer.0.attention.output.dense.weight", "layers.0.feed_forward.w2.weight"}) {
    CAPTURE(std::string(name));
    CHECK(groups_of({matrix(name)}, groups) == std::vector<int>{0});
    CHECK(groups_of({vector(name)}, groups) == std::vector<int>{2});
  }
  for (const char* name : {"wte.weight", "transformer.wpe.weight", "model.embed_tokens.weight", "tok_embeddings.weight",
                           "output.weight", "lm_head.weight", "bert.embeddings.word_embeddings.weight"}) {
    CAPTURE(std::string(name));
    CHECK(groups_of({matrix(name)}, groups) == std::vector<int>{1});
    CHECK(groups_of({vector(name)}, groups) == std::vector<int>{2});
  }
  CHECK(groups_of({matrix("wte"), matrix("q")}, usual_groups(MuonSettings(), AdamWSettings(), {"q"})) ==
        std::vector<int>{0, 1});
  CHECK(groups_of({matrix("wte")}, usual_groups(MuonSettings(), AdamWSettings(), {"none"})) == std::vector<int>{0});
}

TEST_CASE("usual_groups: each group has settings of its own; vectors do not decay") {
  AdamWSettings adamw;
  adamw.lr = 0.5f;
  adamw.weight_decay = 1.0f;
  const std::vector<ParameterGroup> groups = usual_groups(MuonSettings(), adamw);
  const std::vector<Parameter> parameters = route({matrix("wte"), vector("norm")}, groups);
  const auto serial =
      GroupedOptimizer(groups, parameters).reference({{"wte", Matrix(1, 1, Flat{8})}, {"norm", Matrix(1, 1, Flat{8})}});
  serial->step({{Matrix(1, 1), Matrix(1, 1)}});  // without a gradient, decay alone is left
  CHECK(serial->parameters()[0].matrix(0, 0) == 4);
  CHECK(serial->parameters()[1].matrix(0, 0) == 8);
}

TEST_CASE("GroupedOptimizer: its reference skips steps, and scales rates, in all of its groups") {
  AdamWSettings settings;
  settings.weight_decay = 0;
  const std::vector<ParameterGroup> groups = usual_groups(MuonSettings(), settings);
  const std::vector<Parameter> parameters = route({matrix("wte"), vector("norm")}, groups);
  const auto reference = [&] {
    return GroupedOptimizer(groups, parameters).reference({{"wte", Matrix(1, 1)}, {"norm", Matrix(1, 1)}});
  };
  const Matrix one(1, 1, Flat{1});
  const auto skipping = reference(), halved = reference(), usual = reference();
  usual->step({{one, one}});
  skipping->skip_steps(9);
  skipping->step({{one, one}});
  halved->scale_learning_rates(0.5f);
  halved->step({{one, one}});
  for (std::size_t p = 0; p < 2; ++p) {
    AdamWState tenth = initial_adamw_state(Flat(1));
    adamw(tenth, Flat{1}, 10, settings);
    CHECK(skipping->parameters()[p].matrix(0, 0) == tenth.weights[0]);
    CHECK(usual->parameters()[p].matrix(0, 0) != tenth.weights[0]);
    CHECK(halved->parameters()[p].matrix(0, 0) == usual->parameters()[p].matrix(0, 0) / 2);
  }
}

TEST_CASE("route: a parameter that no group claims, or two do, is refused by name") {
  const ParameterGroup a = group("a", {2, {"q*", "k"}, {"qk"}}), b = group("b", {0, {"*k"}, {}});
  CHECK(groups_of({matrix("q"), matrix("qk"), vector("k")}, {a, b}) == std::vector<int>{0, 1, 1});
  CHECK(
      usage_error([&] {
        route({matrix("q"), matrix("v")}, {a, b});
      }) ==
      "parameter \"v\" with 2 dimensions is claimed by no group, so nothing would ever train it; let the claim of one "
      "hold for it");
  CHECK(usage_error([&] {
          route({vector("q")}, {a, b});
        }).rfind("parameter \"q\" with 1 dimension is claimed by", 0) == 0);
  CHECK(
      usage_error([&] {
        route({matrix("q"), matrix("k")}, {a, b});
      }) ==
      "parameter \"k\" is claimed by the groups \"a\" and \"b\", but one optimizer has to step it; except it from one "
      "of them");
  CHECK(usage_error([&] { route({matrix("q")}, {}); }).find("no group") != std::string::npos);
}

TEST_CASE("GroupedOptimizer: a group that is not there, a stranger's gradients and an unknown parameter are refused") {
  const std::vector<ParameterGroup> groups = usual_groups(MuonSettings(), AdamWSettings());
  GroupedOptimizer optimizer(groups, route({matrix("w")}, groups));
  CHECK(optimizer.name() == "Muon + ZeRO-1 AdamW");
  CHECK_THROWS_WITH_AS(optimizer.reference({{"v", Matrix(8, 4)}}), "\"v\" is not one of the routed parameters",
                       std::invalid_argument);
  const Layout layout = plan_layout({{"w", {8, 4}, SplitDim::none, 3}}, Grid());
  CHECK_THROWS_WITH_AS(optimizer.start(layout, Grid().place(0), zero_buckets(layout)),
                       "the layout has a buffer of parameter group 3, but there are 3 groups, counted from 0; plan it "
                       "from routed parameters",
                       std::invalid_argument);
  run_ranks(Grid(), [&](TestRank& rank) {
    const Layout right = plan_layout({matrix("w")}, Grid());
    optimizer.start(right, rank.place, zero_buckets(right));
    std::string sentence;
    try {
      optimizer.step({right, rank.place, rank.dp, rank.tp}, Buckets{});
    } catch (const std::invalid_argument& error) {
      sentence = error.what();
    }
    if (sentence.find("gradients for 0 buffers") == std::string::npos) throw std::logic_error("was taken: " + sentence);
  });
}
