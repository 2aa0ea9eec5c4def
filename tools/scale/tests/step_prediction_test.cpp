// A step with Muon is a step with AdamW, what Muon adds, and other optimizer state; worked out by hand where it can be.
#include "tools/scale/training_time.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <string_view>

#include "tests/near.hpp"
#include "tools/scale/training_memory.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

TrainingLayout layout_of(int dp, int tp, int pp, int micro_batch, int accumulation) {
  TrainingLayout layout;
  layout.dp = dp;
  layout.tp = tp;
  layout.pp = pp;
  layout.nodes = std::max(1, dp * tp * pp / 8);
  layout.zero = 1;
  layout.micro_batch = micro_batch;
  layout.accumulation = accumulation;
  return layout;
}

const Term* term_of(const std::vector<Term>& terms, const TermKind* kind) {
  for (const Term& term : terms)
    if (term.kind == kind) return &term;
  return nullptr;
}

double transient_bytes(const std::vector<Term>& terms) {
  double bytes = 0;
  for (const Term& term : terms)
    if (term.kind->when == TermKind::transient) bytes += term.amount;
  return bytes;
}

void expect_equal(const Term& a, const Term& b) {
  CHECK(a.kind == b.kind);
  CHECK(a.amount == b.amount);
  CHECK(a.formula == b.formula);
  CHECK(a.inputs.size() == b.inputs.size());
}

}  // namespace

TEST_CASE("predict_muon: AdamW's step, term by term, and behind it what muon_cost says, for every strategy") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const char* model : {"8B", "qwen3-30b"})
    for (const TrainingLayout& layout : {layout_of(8, 1, 1, 1, 4), layout_of(4, 2, 4, 2, 8), layout_of(2, 8, 2, 1, 1)})
      for (const Strategy& strategy : strategies()) {
        const StepQuestion question{model_shape(model), cluster, software_of("nanotron"), layout};
        const MuonSetup setup{strategy};
        const MuonCost cost = muon_cost(question.model, layout, setup, cluster);
        const StepPrediction adamw = predict_adamw(question), muon = predict_muon(question, setup);
        CAPTURE(model);
        CAPTURE(strategy.letter);
        REQUIRE(muon.seconds.size() == adamw.seconds.size() + cost.terms.size());
        for (std::size_t i = 0; i < adamw.seconds.size(); ++i) expect_equal(muon.seconds[i], adamw.seconds[i]);
        for (std::size_t i = 0; i < cost.terms.size(); ++i)
          expect_equal(muon.seconds[adamw.seconds.size() + i], cost.terms[i]);
        CHECK(muon.step_seconds() == near(adamw.step_seconds() + cost.seconds()));
        CHECK(cost.seconds() > 0);
        CHECK(predict_muon(question, cost).step_seconds() == muon.step_seconds());
        CHECK(total(predict_muon(question, cost).bytes) == total(muon.bytes));
      }
}

TEST_CASE("predict_muon: by hand, one momentum for Llama's matrices, and two moments for the rest") {
  // 8B: 32 layers of 4 · 4096² and 3 · 4096 · 14336 weights, two tables of 131,072 tokens.
  const double matrices = 32.0 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 14336), tables = 2.0 * 131072 * 4096;
  const Cluster cluster = cluster_of("h100-efa");
  for (const int dp : {1, 4}) {
    const StepQuestion question{model_shape("8B"), cluster, software_of("nanotron"), layout_of(dp, 1, 1, 1, 1)};
    const StepPrediction adamw = predict_adamw(question), muon = predict_muon(question, MuonSetup());
    const Term* moments = term_of(adamw.bytes, &terms::two_moments);
    const Term* momentum = term_of(muon.bytes, &terms::muon_state);
    REQUIRE(moments != nullptr);
    REQUIRE(momentum != nullptr);
    CHECK(term_of(muon.bytes, &terms::two_moments) == nullptr);
    // Norms, half a million weights, are in none of the two.
    CHECK(moments->amount == near(8 * (matrices + tables) / dp, 1e-9));
    CHECK(momentum->amount == near((4 * matrices + 8 * tables) / dp, 1e-4));
    REQUIRE(momentum->inputs.size() == 2);
    CHECK(momentum->inputs[0].value == moments->amount);
    CHECK(momentum->inputs[1].value == near(matrices / (matrices + tables), 1e-4));
    // Nothing else changes.
    const double gathered = term_of(muon.bytes, &terms::gathered_matrices) == nullptr
                                ? 0
                                : term_of(muon.bytes, &terms::gathered_matrices)->amount;
    CHECK(total(muon.bytes) - gathered == near(total(adamw.bytes) - moments->amount + momentum->amount));
  }
}

TEST_CASE("predictions: experts are dealt out over ranks, and the optimizer state of all ranks stays as much") {
  const Cluster cluster = cluster_of("h100-efa");
  const ModelShape& model = model_shape("qwen3-30b");
  const auto moments = [&](int ep) {
    TrainingLayout layout = layout_of(16, 2, 1, 1, 1);
    layout.ep = ep;
    const std::vector<Term> bytes = predict_adamw({model, cluster, software_of("nanotron"), layout}).bytes;
    return term_of(bytes, &terms::two_moments)->amount;
  };
  // Every DP rank has a sixteenth of the two moments of all that its TP rank has, norms left out.
  CHECK(moments(1) == near(8 * model.parameters() / 2 / 16, 1e-3));
  for (const int ep : {2, 8, 16}) CHECK(moments(ep) == near(moments(1)));
}

TEST_CASE("predict_muon: gathered matrices count only where they are more than the activations, and then only that") {
  const Cluster cluster = cluster_of("h100-efa");
  const StepQuestion question{model_shape("8B"), cluster, software_of("nanotron"), layout_of(8, 1, 1, 1, 1)};
  const double activations = transient_bytes(predict_adamw(question).bytes);
  REQUIRE(activations > kGibibyte);
  MuonCost cost;
  const double without = total(predict_muon(question, cost).bytes);
  for (const double transient : {0.0, activations / 2, activations}) {
    cost.transient_bytes = transient;
    const StepPrediction prediction = predict_muon(question, cost);
    CHECK(term_of(prediction.bytes, &terms::gathered_matrices) == nullptr);
    CHECK(total(prediction.bytes) == without);
  }
  cost.transient_bytes = activations + 3e9;
  const StepPrediction prediction = predict_muon(question, cost);
  const Term* term = term_of(prediction.bytes, &terms::gathered_matrices);
  REQUIRE(term != nullptr);
  CHECK(term->amount == near(3e9));
  REQUIRE(term->inputs.size() == 2);
  CHECK(term->inputs[0].value == cost.transient_bytes);
  CHECK(term->inputs[1].value == near(activations));
  CHECK(total(prediction.bytes) == near(without + 3e9));
}

TEST_CASE("predictions: whether it fits is decided by the sum of the bytes, Muon's included") {
  Cluster cluster = cluster_of("h100-efa");
  const TrainingSoftware& software = software_of("nanotron");
  const StepQuestion question{model_shape("1B"), cluster, software, layout_of(8, 1, 1, 1, 1)};
  MuonCost cost;
  cost.transient_bytes = 40 * kGibibyte;
  const double needed = total(predict_muon(question, cost).bytes), adamw = total(predict_adamw(question).bytes);
  REQUIRE(needed > adamw);
  cluster.accelerator.memory_bytes = needed / software.usable_share * 1.0001;
  CHECK(predict_muon(question, cost).fits);
  cluster.accelerator.memory_bytes = needed / software.usable_share * 0.9999;
  CHECK(!predict_muon(question, cost).fits);
  CHECK(predict_adamw(question).fits);
  cluster.accelerator.memory_bytes = adamw / software.usable_share * 0.9999;
  CHECK(!predict_adamw(question).fits);
}
