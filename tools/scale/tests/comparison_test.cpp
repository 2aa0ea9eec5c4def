// Muon beside AdamW: what both optimizers' steps send, against the plan of every rank, formulas by hand, and the
// published run; and whole steps, against the same predictions by themselves.
#include "tools/scale/comparison.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "src/errors.hpp"
#include "src/optim/plan.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "src/train/models.hpp"
#include "src/train/published_models.hpp"
#include "tests/near.hpp"
#include "tools/scale/cluster.hpp"
#include "tools/scale/layout_search.hpp"
#include "tools/scale/muon_cost.hpp"
#include "tools/scale/training_time.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// What a rank sends in its whole step, by its plan, with gathers in bf16.
std::int64_t planned_bytes(const Layout& layout, int dp_rank) {
  MuonSettings settings;
  settings.newton_schulz.precision = Precision::bf16;
  const Place place = layout.grid.place(layout.grid.rank(dp_rank, 0));
  Traffic sum;
  for (const PlannedCall& call : calls_of(gather_everything().optimizer(layout, settings, 0)->plan(layout, place)))
    sum += call.traffic;
  return sum.bytes_sent;
}

double newton_schulz_of(const Layout& layout, int dp_rank) {
  const Place place = layout.grid.place(layout.grid.rank(dp_rank, 0));
  return flops(gather_everything().optimizer(layout, {}, 0)->plan(layout, place), "Newton–Schulz");
}

// Two levels with round numbers: 8 accelerators in a node, and links of 32 GB/s between nodes whose bandwidth was
// measured for up to 16 of them.
Cluster round_cluster() {
  Cluster cluster;
  cluster.name = "round";
  cluster.accelerator = {"accelerator", 1e15, 80 * kGibibyte, 3e12, {}, "made up"};
  cluster.levels.resize(2);
  cluster.levels[0] = {"inside", 8, 256 * kGigabyte, 4e-6, {}, {}, "made up"};
  cluster.levels[1] = {"between", 0, 32 * kGigabyte, 16e-6, {}, {}, "made up"};
  for (MeasuredCurve* curve : {&cluster.levels[1].all_reduce, &cluster.levels[1].all_gather})
    *curve = MeasuredCurve{{{2, 240e9}, {16, 120e9}}, "made up"};
  return cluster;
}

// One level, so that formulas by hand are short.
Cluster flat_cluster(double latency, double bytes_per_second) {
  Cluster cluster = round_cluster();
  cluster.levels.resize(1);
  cluster.levels[0] = {"flat", 64, bytes_per_second, latency, {}, {}, "made up"};
  return cluster;
}

const TrainingSoftware& software() { return software_of(software_names().front()); }

}  // namespace

TEST_CASE("compare_communication: the published run, dp 2 × tp 2 over dp 4: its bytes, and near its ratio of times") {
  const std::vector<Parameter> matrices = published_run_parameters();
  const CommunicationComparison run = compare_communication(matrices, 2, 2, 0, 0, cluster_of("rtx4090-100gbe"));
  CHECK(run.adamw_bytes == 109'106'976);
  // Gradients, weights, and both gathers of the rank that has most of the work: 27.0 MB.
  CHECK(run.muon_bytes == 2 * 18'651'440.0 + 27'043'272);
  // Published: 0.57, without gradients and weights, and with gathers in another type (lesson 13).
  CHECK(run.ratio() > 0.5);
  CHECK(run.ratio() < 0.65);
  CHECK(run.bytes_ratio() == near(0.59, 0.01));
}

TEST_CASE("compare_communication: any matrices: the bytes of the rank that works most are those of its plan") {
  const Cluster cluster = flat_cluster(1e-6, 1e9);
  for (unsigned seed = 1; seed <= 60; ++seed) {
    std::mt19937 random(seed);
    const int dp = 1 << random() % 4, tp = 1 << random() % 3;
    if (dp * tp == 1) continue;
    std::vector<Parameter> matrices;
    Index elements = 0;
    for (int i = 0; i < 1 + static_cast<int>(random() % 6); ++i) {
      const Index rows = 32 * (1 + random() % 4), cols = 32 * (1 + random() % 4);
      matrices.push_back({"m" + std::to_string(i), {rows, cols}, random() % 2 ? SplitDim::rows : SplitDim::columns});
      elements += rows * cols;
    }
    const Index bucket = random() % 2 ? 0 : 2048 * (1 + static_cast<Index>(random() % 4));
    INFO("seed " << seed << ", dp " << dp << " × tp " << tp << ", bucket " << bucket);
    const CommunicationComparison both = compare_communication(matrices, dp, tp, bucket, bucket, cluster);
    const Layout layout = gather_everything().lay_out(matrices, Grid().dp(dp).tp(tp), bucket);
    int busiest = 0;
    for (int rank = 1; rank < dp; ++rank)
      if (newton_schulz_of(layout, rank) > newton_schulz_of(layout, busiest)) busiest = rank;
    CHECK(both.muon_bytes == planned_bytes(layout, busiest));
    const double gpus = dp * tp;
    CHECK(both.adamw_bytes == near(8.0 * static_cast<double>(elements) * (gpus - 1) / gpus, 1e-12));
    CHECK_FALSE(both.extrapolated);
  }
}

TEST_CASE("compare_communication: without TP it is an eighth more than the moves of AdamW, in bytes and in seconds") {
  const double latency = 3e-6, rate = 5e9;
  for (const int dp : {2, 4, 16, 64}) {
    CAPTURE(dp);
    const std::vector<Parameter> matrices = {{"a", {256, 512}}, {"b", {1024, 256}}};
    const CommunicationComparison both = compare_communication(matrices, dp, 1, 0, 0, flat_cluster(latency, rate));
    CHECK(both.bytes_ratio() == near(1.25, 1e-12));
    const double move = 4 * (256 * 512 + 1024 * 256) * (dp - 1.0) / dp / rate, start = latency * (dp - 1);
    CHECK(both.adamw_seconds == near(2 * start + 2 * move, 1e-9));
    CHECK(both.muon_seconds == near(3 * start + 2.5 * move, 1e-9));
  }
}

TEST_CASE("compare_communication: where only messages cost time, it is three of them to two, over any levels") {
  // Reduce-scatter, gather of the momentum and gather of the weights, over the two halves of an all-reduce: equal calls
  // take equal times on both sides, however the levels of a cluster are passed.
  const std::vector<Parameter> matrices = {{"a", {256, 512}}, {"b", {1024, 256}}};
  for (const char* name : {"h100-efa", "h100-ndr", "gb300-nvl72"}) {
    Cluster cluster = cluster_of(name);
    for (NetworkLevel& level : cluster.levels) {
      level.bytes_per_second = 1e30;
      level.all_reduce = level.all_gather = MeasuredCurve();
    }
    for (const int dp : {2, 8, 72, 720}) {
      CAPTURE(name);
      CAPTURE(dp);
      CHECK(compare_communication(matrices, dp, 1, 0, 0, cluster).ratio() == near(1.5, 1e-9));
    }
  }
}

TEST_CASE("compare_communication: a model's are all matrices of Muon, in Megatron-LM's buckets; experts count too") {
  const Cluster cluster = flat_cluster(1e-6, 1e9);
  for (const char* name : {"gpt2", "llama-7b", "moonlight-16b"}) {
    CAPTURE(name);
    const ModelShape& model = model_shape(name);
    const CommunicationComparison both = compare_communication(model, 8, 2, cluster);
    CHECK(both.adamw_bytes == near(8 * model.muon_parameters() * 15 / 16, 1e-9));
  }
}

TEST_CASE("compare_communication: a model's buckets are those that its DP ranks fill") {
  // Bytes cost next to nothing here, so that seconds count buckets.
  const Cluster cluster = flat_cluster(1, 1e30);
  const ModelShape& model = model_shape("llama-7b");
  const auto buckets = [&model](int dp, int tp) {
    return static_cast<double>(plan_layout(stage_matrices(model, 1).dense, Grid().dp(dp).tp(tp), {megatron_bucket(dp)})
                                   .buffers.front()
                                   .buckets.size());
  };
  const CommunicationComparison both = compare_communication(model, 8, 1, cluster);
  CHECK(both.muon_seconds == near(3 * 7 * buckets(8, 1), 1e-9));
  CHECK(both.adamw_seconds == near(2 * 7 * buckets(8, 1), 1e-9));
  CHECK(compare_communication(model, 8, 8, cluster).adamw_seconds == near(2 * 63 * buckets(64, 1), 1e-9));
  CHECK(buckets(64, 1) < buckets(8, 1));
}

TEST_CASE("compare_communication: what is outside of a measured range says so") {
  const Cluster cluster = round_cluster();
  CHECK_FALSE(compare_communication(model_shape("gpt2"), 16, 8, cluster).extrapolated);
  CHECK(compare_communication(model_shape("gpt2"), 32, 8, cluster).extrapolated);
  // Also where that is so for the all-reduce of AdamW alone.
  Cluster other = cluster;
  other.levels[1].all_reduce = MeasuredCurve{{{2, 240e9}, {4, 120e9}}, "made up"};
  CHECK_FALSE(compare_communication(model_shape("gpt2"), 4, 8, other).extrapolated);
  CHECK(compare_communication(model_shape("gpt2"), 8, 8, other).extrapolated);
}

TEST_CASE("compare_communication: a single rank, and a split that does not divide, are refused") {
  const Cluster cluster = flat_cluster(1e-6, 1e9);
  CHECK_THROWS_WITH_AS(compare_communication({{"a", {8, 8}}}, 1, 1, 0, 0, cluster),
                       "dp 1 × tp 1 is one rank, which sends nothing, so there is nothing to compare; take 2 or more",
                       UsageError);
  CHECK_THROWS_AS(compare_communication({{"a", {9, 8}, SplitDim::rows}}, 2, 2, 0, 0, cluster), UsageError);
}

TEST_CASE(
    "expert_ranks: any grid: it divides the experts and dp, and no larger one lies evenly; so layouts are found") {
  const Cluster cluster = cluster_of("gb300-nvl72");
  const ModelShape& model = model_shape("qwen3-30b");
  const auto even = [&cluster](int ranks, int stride) {
    try {
      return !group_spread(cluster, ranks, stride).widths.empty();
    } catch (const UsageError&) {
      return false;
    }
  };
  for (const int dp : {1, 8, 9, 18, 36, 72, 144, 576})
    for (const int tp : {1, 2, 4, 8}) {
      INFO("dp " << dp << " × tp " << tp);
      int largest = 1;
      for (int ep = 2; ep <= dp; ++ep)
        if (dp % ep == 0 && model.experts.count % ep == 0 && even(ep, tp) && even(dp / ep, tp * ep)) largest = ep;
      CHECK(expert_ranks(model, cluster, dp, tp) == largest);
    }
  CHECK(expert_ranks(model_shape("gpt2"), cluster, 64, 1) == 1);
  CHECK_FALSE(find_layouts({model, cluster, software(), 144}, 1).best.empty());
}
