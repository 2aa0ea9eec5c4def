// Models, layouts and terms: totals that were published, sentences, and how a prediction is taken apart.
#include "sim/cost_model/model_shape.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "sim/cost_model/prediction.hpp"
#include "sim/cost_model/training_layout.hpp"
#include "src/text/text.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

TEST_CASE("model_shape: the Playbook's models have the parameters and FLOPs that its speeds give back") {
  // Parameters, and FLOPs per token as the Playbook counts them: 6 N + attention, the input table included.
  struct Published {
    const char* name;
    double parameters, flops;
  };
  for (const Published& each : {Published{"1B", 1.342e9, 9.66e9},
                                {"3B", 3.574e9, 25.67e9},
                                {"8B", 8.859e9, 59.59e9},
                                {"80B", 79.995e9, 512.2e9}}) {
    CAPTURE(each.name);
    const ModelShape& model = model_shape(each.name);
    CHECK(std::abs(model.parameters() / each.parameters - 1) < 5e-4);
    const double table = model.tied ? 0 : static_cast<double>(model.vocabulary * model.width);
    CHECK(std::abs((model.flops_per_token() + 6 * table) / each.flops - 1) < 2e-3);
  }
}

TEST_CASE("model_shape: Megatron's are as large as they are called, and experts are active by their share") {
  CHECK(std::abs(model_shape("megatron-22b").parameters() / 22e9 - 1) < 0.02);
  CHECK(std::abs(model_shape("megatron-175b").parameters() / 175e9 - 1) < 0.01);
  CHECK(std::abs(model_shape("megatron-530b").parameters() / 530e9 - 1) < 0.01);
  CHECK(std::abs(model_shape("megatron-1t").parameters() / 1008e9 - 1) < 0.01);
  // "30.5B in total and 3.3B activated", "1 trillion parameters, 32 billion activated": their model cards.
  CHECK(std::abs(model_shape("qwen3-30b").active_parameters() / 3.0e9 - 1) < 0.05);  // without the input table
  CHECK(std::abs(model_shape("kimi-k2").active_parameters() / 32e9 - 1) < 0.05);
  CHECK(model_shape("moonlight-16b").muon_parameters() < 15.29e9);
  for (const std::string& name : model_shape_names()) {
    CAPTURE(name);
    const ModelShape& model = model_shape(name);
    CHECK(model.active_parameters() <= model.parameters());
    CHECK(model.muon_parameters() < model.parameters());
    CHECK(!model.source.empty());
    Index tensors = 0;
    for (const TensorClass& each : model.tensors) tensors += each.count;
    CHECK(tensors > model.layers);
  }
  const std::string said = usage_error([] { model_shape("80b"); });
  CHECK(said.find("\"80b\" is not known") != std::string::npos);
  CHECK(said.find("80B") != std::string::npos);
}

TEST_CASE("require_sensible: a layout that can't be is refused in a sentence") {
  TrainingLayout good;
  good.nodes = 2;
  good.dp = 4;
  good.tp = 2;
  good.pp = 2;
  CHECK_NOTHROW(require_sensible(good, 8));
  const auto refused = [&good](auto change, const char* words) {
    TrainingLayout layout = good;
    change(layout);
    const std::string said = usage_error([&] { require_sensible(layout, 8); });
    CAPTURE(said);
    CHECK(said.find(words) != std::string::npos);
  };
  refused([](TrainingLayout& l) { l.dp = 3; }, "makes 12 ranks");
  refused([](TrainingLayout& l) { l.nodes = 3; }, "have 24");
  refused([](TrainingLayout& l) { l.tp = 0; }, "tp is 0");
  refused([](TrainingLayout& l) { l.pp = -1; }, "pp is -1");
  refused([](TrainingLayout& l) { l.micro_batch = 0; }, "the micro-batch is 0");
  refused([](TrainingLayout& l) { l.accumulation = 0; }, "the accumulation is 0");
  refused([](TrainingLayout& l) { l.zero = 2; }, "ZeRO stage 2");
  refused([](TrainingLayout& l) { l.ep = 3; }, "ep 3 does not divide dp 4");
  refused([](TrainingLayout& l) { l.dp = l.tp = l.pp = 1 << 20; }, "makes 1,152,921,504,606,846,976 ranks");
  CHECK(text(good) == "dp 4 × tp 2 × pp 2, ZeRO-0, 1 micro-batch of 1");
  CHECK(parse_recomputation("selective") == Recomputation::selective);
  CHECK(usage_error([] { parse_recomputation("all"); }).find("none, selective or full") != std::string::npos);
}

TEST_CASE("explain: amounts, shares, formulas, inputs with their sources, and what was not measured") {
  std::vector<Term> terms = {
      {"arithmetic", 0.75, "FLOPs / rate", {{"FLOPs", 3e12, "FLOP", "the model"}, {"rate", 4e12, "FLOP/s", "a sheet"}}},
      {"latency", 2.5e-4, "calls · α", {{"calls", 25, "", "the plan"}, {"α", 1e-5, "s", "a curve", true, 64}}}};
  CHECK(total(terms) == doctest::Approx(0.75025));
  CHECK(any_extrapolated(terms));
  CHECK(!terms[0].extrapolated());
  CHECK(terms[1].extrapolated());
  const std::string text = explain(terms, "s");
  for (const char* part :
       {"arithmetic", "750 ms", "100.0 %", "= FLOPs / rate", "FLOPs = 3 TFLOP (the model)", "250 µs",
        "calls = 25 (the plan)", "α = 10 µs (a curve), outside of what was measured", "at 64", "750.2 ms"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part << " is not in\n" << text);
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; begin = end + 1, end = text.find('\n', begin))
    CHECK(text_width(text.substr(begin, end - begin)) <= kColumns);
  CHECK(explain({}, "s").find("0 s") != std::string::npos);
  CHECK(explain({{"weights", 2.5e9, "", {}}}, "B").find("2.5 GB") != std::string::npos);
}
