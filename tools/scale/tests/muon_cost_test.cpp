// What Muon adds to a step: cases that can be worked out by hand, and the sums over plans that src/optim/strategies
// makes.
#include "tools/scale/muon_cost.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/strategies/strategy_cost.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"
#include "tests/strategies/strategy_case.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::test;

namespace {

// One level that joins everything: a byte takes a second, a message nothing, an operation a nanosecond.
Cluster plain_cluster(double latency = 0) {
  Cluster cluster;
  cluster.name = "plain";
  cluster.accelerator = {"unit", 1e9, 1e12, 1e12, {MeasuredCurve{{{1, 1}}, "made up"}}, "made up"};
  NetworkLevel level;
  level.name = "wire";
  level.bytes_per_second = 1;
  level.latency_seconds = latency;
  cluster.levels = {level};
  return cluster;
}

double seconds_of(const MuonCost& cost, const TermKind* kind) {
  double seconds = 0;
  for (const Term& term : cost.terms)
    if (term.kind == kind) seconds += term.amount;
  return seconds;
}

MuonSetup setup_of(const Strategy& strategy, Precision precision = Precision::bf16) {
  MuonSetup setup;
  setup.strategy = strategy;
  setup.settings.newton_schulz.precision = precision;
  return setup;
}

// Two equal matrices, cut by rows, 64 elements each.
std::vector<Parameter> pair_of_matrices() { return {{"a", {8, 8}, SplitDim::rows}, {"b", {8, 8}, SplitDim::rows}}; }

}  // namespace

TEST_CASE("muon_cost: by hand, two matrices on dp 2 × tp 2") {
  const double one = newton_schulz_flops(8, 8);
  // (d): an owner each, who gathers the other half of its slice of it: 32 elements in bf16.
  const MuonCost by_work = muon_cost(pair_of_matrices(), 2, 2, 2, 0, setup_of(owner_by_work()), plain_cluster());
  CHECK(by_work.flops == one);
  CHECK(seconds_of(by_work, &terms::newton_schulz) == near(one / 1e9));
  CHECK(seconds_of(by_work, &terms::tp_gather) == near(64));
  CHECK(by_work.bytes_sent == near(64));
  // (f): the same in float32.
  const MuonCost unrounded = muon_cost(pair_of_matrices(), 2, 2, 2, 0, setup_of(tp_duplicated()), plain_cluster());
  CHECK(seconds_of(unrounded, &terms::tp_gather) == near(128));
  // (a): one bucket of 64 elements, a rank gathers the other 32 of them. It owns one matrix whole, and works on that.
  const MuonCost everything = muon_cost(pair_of_matrices(), 2, 2, 2, 0, setup_of(gather_everything()), plain_cluster());
  CHECK(seconds_of(everything, &terms::dp_gather) == near(64));
  CHECK(everything.flops == one);
  // (e): each owns and works on one of them, so nothing has to travel.
  const MuonCost workers = muon_cost(pair_of_matrices(), 2, 2, 2, 0, setup_of(all_to_all()), plain_cluster());
  CHECK(seconds_of(workers, &terms::to_workers) == 0);
  CHECK(seconds_of(workers, &terms::tp_gather) == near(64));
}

TEST_CASE("muon_cost: by hand, one matrix on dp 2: who has nothing to do does not count, and whoever is cut travels") {
  const std::vector<Parameter> one = {{"a", {8, 8}, SplitDim::rows}};
  const double flops = newton_schulz_flops(8, 8);
  const MuonCost owner = muon_cost(one, 2, 1, 1, 0, setup_of(owner_in_turn()), plain_cluster());
  CHECK(owner.flops == flops);
  CHECK(owner.bytes_sent == 0);
  // (b) sends halves to each other; (e) one half there, and the result back: 32 elements in bf16, twice.
  const MuonCost cut = muon_cost(one, 2, 1, 1, 0, setup_of(boundary_matrices()), plain_cluster());
  CHECK(seconds_of(cut, &terms::dp_gather) == near(64));
  const MuonCost worker = muon_cost(one, 2, 1, 1, 0, setup_of(all_to_all()), plain_cluster());
  CHECK(seconds_of(worker, &terms::to_workers) == near(2 * 64));
}

TEST_CASE("muon_cost: a latency is paid for each call") {
  const std::vector<Parameter> matrices = pair_of_matrices();
  const MuonSetup setup = setup_of(gather_everything());
  const MuonCost free = muon_cost(matrices, 2, 1, 1, 64, setup, plain_cluster());
  const MuonCost slow = muon_cost(matrices, 2, 1, 1, 64, setup, plain_cluster(10));
  // Two buckets, and one message in each gather.
  CHECK(slow.seconds() == near(free.seconds() + 2 * 10));
}

TEST_CASE("muon_cost: random layouts: FLOPs of the busiest rank are those of the plans of all ranks") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed)
    for (const Strategy& strategy : strategies()) {
      Case c = strategy_case(seed);
      c.settings.fused.clear();
      INFO("(" << strategy.letter << ") " << c.text());
      const Layout layout = lay_out(strategy, c);
      if (!takes(strategy, layout, c.settings)) continue;
      if (strategy.letter == 'g' || strategy.letter == 'h') continue;  // whose pieces have FLOPs of their own
      MuonSetup setup = setup_of(strategy, c.settings.newton_schulz.precision);
      setup.settings.newton_schulz.steps = c.settings.newton_schulz.steps;
      const MuonCost cost = muon_cost(c.parameters, c.grid.dp(), c.grid.tp(), c.grid.tp(), c.options.bucket_capacity,
                                      setup, plain_cluster());
      double most = 0;
      for (int dp = 0; dp < c.grid.dp(); ++dp) {
        MuonSettings settings;
        settings.newton_schulz.steps = setup.settings.newton_schulz.steps;
        const double own =
            flops(strategy.optimizer(layout, settings, 0)->plan(layout, c.grid.place(c.grid.rank(dp, 0))),
                  phases::orthogonalize);
        most = std::max(most, own);
      }
      CHECK(cost.flops == near(most));
    }
}

TEST_CASE("stage_matrices: all stages together have the model's matrices, experts are dealt out, and pp has a limit") {
  const ModelShape& llama = model_shape("llama-7b");
  double elements = 0;
  for (const Parameter& each : stage_matrices(llama, 1).dense) elements += static_cast<double>(each.shape.size());
  CHECK(elements == llama.muon_parameters());
  CHECK(stage_matrices(llama, 4).dense.size() * 4 == stage_matrices(llama, 1).dense.size());
  CHECK(stage_matrices(llama, 5).dense.size() == 7 * 7);  // 7 of 32 layers in the fullest, 7 matrices in each
  const ModelShape& qwen = model_shape("qwen3-30b");
  CHECK(stage_matrices(qwen, 48, 8).experts.size() == 128 / 8 * 3);
  CHECK(stage_matrices(qwen, 48, 128).experts.size() == 3);
  CHECK(usage_error([&] { stage_matrices(llama, 33); }).find("32 layers") != std::string::npos);
  CHECK(usage_error([&] { stage_matrices(qwen, 1, 7); }).find("ep 7") != std::string::npos);
  CHECK(usage_error([&] { stage_matrices(llama, 1, 2); }).find("0 experts") != std::string::npos);
}

TEST_CASE("muon_cost of a model: experts are stepped among those that share them") {
  const ModelShape& qwen = model_shape("qwen3-30b");
  const Cluster cluster = plain_cluster();
  const MuonSetup setup = setup_of(owner_by_work());
  const StageMatrices stage = stage_matrices(qwen, 4, 8);
  TrainingLayout layout;
  layout.dp = 16;
  layout.pp = 4;
  layout.ep = 8;
  const MuonCost both = muon_cost(qwen, layout, setup, cluster);
  const MuonCost dense = muon_cost(stage.dense, 16, 1, 1, megatron_bucket(16), setup, cluster);
  const MuonCost experts = muon_cost(stage.experts, 2, 1, 8, megatron_bucket(2), setup, cluster);
  CHECK(both.flops == near(dense.flops + experts.flops));
  CHECK(both.seconds() == near(dense.seconds() + experts.seconds()));
  layout.dp = 12;
  CHECK(usage_error([&] { muon_cost(qwen, layout, setup, cluster); }).find("does not divide dp 12") !=
        std::string::npos);
}

TEST_CASE("muon_share: T · m / B of square matrices, times who repeats them; experts make m larger") {
  ModelShape square;
  square.tokens = 1000;
  square.tensors = {{{512, 512}, SplitDim::rows, TensorKind::hidden, 7},
                    {{9000, 512}, SplitDim::rows, TensorKind::embedding, 1}};
  TrainingLayout layout;
  layout.dp = 4;
  layout.micro_batch = 2;
  layout.accumulation = 3;
  const double once = 7 * newton_schulz_flops(512, 512);
  const MuonShare share = muon_share(square, layout, once / 4);
  CHECK(share.side == near(512));
  CHECK(share.batch_tokens == 24000);
  CHECK(share.repeats == near(1));
  CHECK(share.all() == near(5 * 512 / 24000.0));
  // Two TP ranks that do the same, and one of four that has all of it.
  layout.tp = 2;
  CHECK(muon_share(square, layout, once / 4).repeats == near(2));
  CHECK(muon_share(square, layout, once).repeats == near(8));
  CHECK(muon_share(square, layout, 0, 8).steps == 8);
  CHECK(muon_share(square, layout, 0, 8).side == near(512));
  // Two of eight experts are visited.
  square.experts.count = 8;
  square.experts.chosen = 2;
  square.tensors[0].kind = TensorKind::expert;
  CHECK(muon_share(square, layout, once).side == near(4 * 512));
}

TEST_CASE("muon_share: of the published pairs: what NVIDIA says of Newton–Schulz and of the model's own FLOPs") {
  // 35 of 686 TFLOP/s, at a batch that follows from it: the default of this model.
  TrainingLayout layout;
  layout.dp = layout.ep = 8;
  const ModelShape& qwen = model_shape("qwen3-30b");
  layout.accumulation = static_cast<int>(qwen.batch_tokens / qwen.tokens / 8);
  const double flops = muon_cost(qwen, layout, MuonSetup(), plain_cluster()).flops;
  const MuonShare share = muon_share(qwen, layout, flops);
  CHECK(share.batch_tokens == qwen.batch_tokens);
  CHECK(share.repeats == near(1, 0.01));
  CHECK(share.once() == near(35.0 / 686, 0.35));  // they count attention and the output layer with the model
}
