// Whole steps with Muon beside those with AdamW: the best layout, the best strategy, and the same prediction by itself.
#include "tools/scale/step_comparison.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/errors.hpp"
#include "tools/scale/layout_search.hpp"
#include "tools/scale/payoff_map.hpp"
#include "tools/scale/step_prediction.hpp"
#include "tools/scale/tests/made_up_maps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

const TrainingSoftware& software() { return software_of(software_names().front()); }

MuonSetup with(const Strategy& strategy) { return {strategy}; }

}  // namespace

TEST_CASE("step_layouts: every one uses all ranks and the whole batch; none where dp does not divide it") {
  const Cluster cluster = round_cluster();
  for (const char* name : {"gpt2", "llama-7b", "qwen3-30b"})
    for (const int gpus : {8, 64, 512, 4096})
      for (const int tp : {1, 4}) {
        const ModelShape& model = model_shape(name);
        const int dp = gpus / tp, sequences = default_sequences(model, gpus);
        INFO(std::string(name) << ", dp " << dp << " × tp " << tp);
        const std::vector<TrainingLayout> layouts = step_layouts(model, cluster, software(), dp, tp);
        CHECK(layouts.empty() == (sequences % dp != 0));
        for (const TrainingLayout& layout : layouts) {
          CHECK(layout.ranks() == gpus);
          CHECK(layout.dp * layout.micro_batch * layout.accumulation == sequences);
          CHECK(layout.ep == (model.experts == 0 ? 1 : std::gcd(static_cast<int>(model.experts), dp)));
          CHECK_NOTHROW(require_sensible(layout, cluster.node()));
        }
        // Fused attention keeps nothing that selective recomputation could drop.
        for (const Recomputation each : {Recomputation::none, Recomputation::selective, Recomputation::full})
          CHECK((!layouts.empty() && !(each == Recomputation::selective && software().fused_attention)) ==
                std::any_of(layouts.begin(), layouts.end(),
                            [each](const TrainingLayout& layout) { return layout.recomputation == each; }));
      }
}

TEST_CASE("compare_steps: the fastest layout that fits, the fastest strategy in it, each as predicted by itself") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const char* name : {"llama-7b", "qwen3-30b"})
    for (const auto& [dp, tp] : {std::pair{8, 8}, {64, 2}, {32, 8}, {256, 1}}) {
      const ModelShape& model = model_shape(name);
      INFO(std::string(name) << ", dp " << dp << " × tp " << tp);
      const std::vector<TrainingLayout> layouts = step_layouts(model, cluster, software(), dp, tp);
      const auto steps = compare_steps(model, cluster, software(), layouts);
      REQUIRE(steps);
      const StepQuestion chosen{model, cluster, software(), steps->layout};
      CHECK(steps->adamw_seconds == predict_adamw(chosen).step_seconds());
      const double by_work = predict_muon(chosen, with(owner_by_work())).step_seconds();
      for (const TrainingLayout& layout : layouts) {
        const StepPrediction other = predict_muon({model, cluster, software(), layout}, with(owner_by_work()));
        if (other.fits) CHECK(by_work <= other.step_seconds());
      }
      double best = by_work;
      bool outside = any_extrapolated(predict_adamw(chosen).seconds);
      std::size_t fitting = 0;
      for (const Strategy& strategy : strategies()) {
        const auto listed = std::find_if(steps->strategies.begin(), steps->strategies.end(),
                                         [&](const auto& each) { return each.first == strategy.letter; });
        const bool is_listed = listed != steps->strategies.end();
        if (!strategy.is_muon) {
          CHECK_FALSE(is_listed);
          continue;
        }
        const StepPrediction muon = predict_muon(chosen, with(strategy));
        CHECK(is_listed == muon.fits);
        if (!is_listed) continue;
        ++fitting;
        CHECK(listed->second == muon.step_seconds());
        best = std::min(best, muon.step_seconds());
        outside = outside || any_extrapolated(muon.seconds);
        if (strategy.letter == steps->best) CHECK(muon.step_seconds() == steps->muon_seconds);
      }
      CHECK(fitting == steps->strategies.size());
      CHECK(steps->muon_seconds == best);
      CHECK(steps->extrapolated == outside);
      CHECK(steps->ratio() > 0.9);
      CHECK(steps->ratio() < 2);
    }
}

TEST_CASE("compare_steps: nothing where nothing fits, and a map says that it is memory") {
  const Cluster cluster = cluster_of("h100-efa");
  const ModelShape& model = model_shape("megatron-530b");
  CHECK_FALSE(compare_steps(model, cluster, software(), step_layouts(model, cluster, software(), 2, 4)));
  const PayoffMap map = payoff_map({model, cluster, &software(), MapColumns::grid, 64});
  CHECK(map.cells[2][2].gpus == 8);
  CHECK(map.cells[2][2].step_obstacle == Obstacle::memory);
  CHECK(map.cells[2][2].communication);
}

TEST_CASE(
    "expert_ranks: any grid: it divides the experts and dp, and no larger one lies evenly; so layouts are found") {
  const Cluster cluster = cluster_of("gb300-nvl72");
  const ModelShape& model = model_shape("qwen3-30b");
  const auto even = [&cluster](int ranks, int stride) {
    try {
      return group_spread(cluster, ranks, stride).ranks == ranks;
    } catch (const UsageError&) {
      return false;
    }
  };
  for (const int dp : {1, 8, 9, 18, 36, 72, 144, 576})
    for (const int tp : {1, 2, 4, 8}) {
      INFO("dp " << dp << " × tp " << tp);
      int largest = 1;
      for (int ep = 2; ep <= dp; ++ep)
        if (dp % ep == 0 && model.experts % ep == 0 && even(ep, tp) && even(dp / ep, tp * ep)) largest = ep;
      CHECK(expert_ranks(model, cluster, dp, tp) == largest);
    }
  CHECK(expert_ranks(model_shape("gpt2"), cluster, 64, 1) == 1);
  CHECK_FALSE(find_layouts({model, cluster, software(), 144}, 1).best.empty());
}

TEST_CASE("payoff_map: with steps: each is that of its cell's layout, finite and above 0, or a word says why not") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const MapColumns columns : {MapColumns::links, MapColumns::grid}) {
    const PayoffMap map = payoff_map({model_shape("llama-7b"), cluster, &software(), columns});
    int steps = 0;
    for (const auto& row : map.cells)
      for (const PayoffCell& cell : row) {
        INFO(cell.gpus << " GPUs, tp " << cell.tp);
        CHECK(cell.step.has_value() == (cell.step_obstacle == Obstacle::none));
        if (cell.obstacle != Obstacle::none) CHECK(cell.step_obstacle == cell.obstacle);
        if (!cell.step) continue;
        ++steps;
        CHECK(std::isfinite(cell.step->ratio()));
        CHECK(cell.step->ratio() > 0);
        CHECK(cell.step->layout.dp == cell.dp);
        CHECK(cell.step->layout.tp == cell.tp);
        CHECK(std::string("abcdef").find(cell.step->best) != std::string::npos);
      }
    CHECK(steps > 40);
    // dp 512 does not divide a batch of 256 sequences.
    if (columns == MapColumns::grid) CHECK(map.cells[8][0].step_obstacle == Obstacle::batch);
  }
}
