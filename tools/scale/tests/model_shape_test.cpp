// Models, layouts and terms: totals that were published, sentences, and how a prediction is taken apart.
#include "tools/scale/model_shape.hpp"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <tuple>

#include "src/text/text.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"
#include "tools/scale/term.hpp"
#include "tools/scale/training_software.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

TEST_CASE("model_shape: models have as many parameters as was published of them") {
  // The Ultra-Scale Playbook's, by its speeds, and Megatron-LM's, which are as large as they are called.
  for (const auto& [name, parameters, relative] : {std::tuple{"1B", 1.342e9, 5e-4},
                                                   {"3B", 3.574e9, 5e-4},
                                                   {"8B", 8.859e9, 5e-4},
                                                   {"80B", 79.995e9, 5e-4},
                                                   {"megatron-22b", 22e9, 0.02},
                                                   {"megatron-175b", 175e9, 0.01},
                                                   {"megatron-530b", 530e9, 0.01},
                                                   {"megatron-1t", 1008e9, 0.01}})
    CHECK_MESSAGE(model_shape(name).parameters() == near(parameters, relative), name);
  for (const std::string& name : model_shape_names()) {
    CAPTURE(name);
    const ModelShape& model = model_shape(name);
    CHECK(model.muon_parameters() < model.parameters());
    CHECK(!model.source.empty());
  }
  const std::string said = usage_error([] { model_shape("80b"); });
  CHECK(said.find("\"80b\" is not known") != std::string::npos);
  CHECK(said.find("80B") != std::string::npos);
}

TEST_CASE("a layout and a way to recompute have their words") {
  TrainingLayout good;
  good.nodes = 2;
  good.dp = 4;
  good.tp = 2;
  good.pp = 2;
  CHECK_NOTHROW(require_sensible(good, 8));
  good.nodes = 3;
  CHECK(usage_error([&] { require_sensible(good, 8); }).find("have 24") != std::string::npos);
  CHECK(text(good) == "dp 4 × tp 2 × pp 2, ZeRO-0, 1 micro-batch of 1");
  CHECK(parse_recomputation("selective") == Recomputation::selective);
  CHECK(usage_error([] { parse_recomputation("all"); }).find("none, selective or full") != std::string::npos);
}

TEST_CASE("explain: amounts, shares, formulas, inputs with their sources, and what was not measured") {
  const std::vector<Term> terms = {
      {&terms::products,
       0.75,
       "FLOPs / rate",
       {{"FLOPs", 3e12, "FLOP", "the model"}, {"rate", 4e12, "FLOP/s", "a sheet"}}},
      {&terms::tp_latency, 2.5e-4, "calls · α", {{"calls", 25, "", "the plan"}, {"α", 1e-5, "s", "a curve", 64}}}};
  CHECK(total(terms) == near(0.75025));
  CHECK(any_extrapolated(terms));
  CHECK(!terms[0].extrapolated());
  const std::vector<std::string> lines = explain(terms, "s");
  const std::string text = fmt::format("{}", fmt::join(lines, "\n"));
  for (const char* part :
       {"products of the layers", "750 ms", "100.0 %", "= FLOPs / rate", "FLOPs = 3 TFLOP (the model)", "250 µs",
        "calls = 25 (the plan)", "α = 10 µs (a curve), outside of what was measured", "at 64", "750.2 ms"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part << " is not in\n" << text);
  for (const std::string& line : lines) CHECK(text_width(line) <= kColumns);
  CHECK(explain({}, "s").back().find("0 s") != std::string::npos);
  CHECK(explain({{&terms::weights, 2.5e9}}, "B").front().find("2.5 GB") != std::string::npos);
}

TEST_CASE("Formula: with names and without the same value, and its text has brackets where they are needed") {
  const auto formula = [](const Formula& a, const Formula& b, const Formula& c) {
    return a * (b + c) / (a * b) - (b - c);
  };
  const auto named = [](const char* name, double value) { return Formula({name, value, "s", "made up"}); };
  const Formula all = formula(named("a", 2), named("b", 3), named("c", 5));
  const Formula numbers = formula(2, 3, 5);
  CHECK(numbers.value == 2.0 * (3 + 5) / (2 * 3) - (3 - 5));
  CHECK(all.value == numbers.value);
  CHECK(numbers.text.empty());
  CHECK(with(at_least_0(numbers), {"b", 1, "", ""}).inputs.empty());
  CHECK(all.text == "a · (b + c) / (a · b) − (b − c)");
  REQUIRE(all.inputs.size() == 3);  // each once, in the order of the text
  for (std::size_t i = 0; i < 3; ++i) CHECK(all.inputs[i].name[0] == "abc"[i]);
  const Formula least = at_least_0(named("a", 2) - 7);
  CHECK(least.value == 0);
  CHECK(least.text == "max(0, a − 7)");
  CHECK((Formula(4.0 / 3, "4/3") * named("a", 2)).text == "4/3 · a");
  CHECK(with(least, {"b", 1, "", ""}).inputs.size() == 2);
}
