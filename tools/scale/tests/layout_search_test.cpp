// The search for the fastest layouts: what is tried, that nothing tried is faster, what is refused, and why others
// lose.
#include "tools/scale/layout_search.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"
#include "tools/scale/training_memory.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

using GridSizes = std::tuple<int, int, int>;

GridSizes grid_of(const TrainingLayout& layout) { return {layout.dp, layout.tp, layout.pp}; }

LayoutSearch search_with(const char* model, const Cluster& cluster, int gpus, int sequences = 0, bool muon = true) {
  const ModelShape& shape = model_shape(model);
  return {shape, cluster, software_of("nanotron"), gpus, {sequences * shape.tokens}, muon};
}

std::int64_t batch_of(const TrainingLayout& layout) {
  return std::int64_t{layout.dp} * layout.micro_batch * layout.accumulation;
}

// The step of every layout that is tried, with every strategy that may be chosen and fits: the least per grid.
std::map<GridSizes, double> least_seconds(const LayoutSearch& search) {
  std::map<GridSizes, double> least;
  std::map<std::tuple<int, int, int, char>, MuonCost> costs;  // which do not depend on micro-batches
  for (const TrainingLayout& layout : possible_layouts(search)) {
    const StepQuestion question{search.model, search.cluster, search.software, layout};
    const auto note = [&](const StepPrediction& prediction) {
      if (!prediction.fits) return;
      const auto [place, is_new] = least.emplace(grid_of(layout), prediction.step_seconds());
      if (!is_new) place->second = std::min(place->second, prediction.step_seconds());
    };
    if (!search.muon) {
      note(predict_adamw(question));
      continue;
    }
    for (const Strategy& strategy : strategies()) {
      if (!strategy.is_muon) continue;
      const MuonSetup setup{strategy};
      const auto key = std::make_tuple(layout.dp, layout.tp, layout.pp, strategy.letter);
      if (costs.count(key) == 0) costs[key] = muon_cost(search.model, layout, setup, search.cluster);
      note(predict_muon(question, costs[key]));
    }
  }
  return least;
}

}  // namespace

TEST_CASE("batch_sequences: somebody's batch, or the least above it that the GPUs divide; or as asked for") {
  for (const std::string& name : model_shape_names())
    for (const int gpus : {1, 7, 8, 96, 1000, 4096, 100'000, 1 << 20}) {
      const ModelShape& model = model_shape(name);
      CAPTURE(name);
      CAPTURE(gpus);
      CHECK(!model.batch_source.empty());
      CHECK(model.batch_tokens % model.tokens == 0);
      int share = gpus;
      while (share % 2 == 0) share /= 2;
      const auto least = [&](const Batch& batch, Index wanted) {
        const Index sequences = batch_sequences(model, gpus, batch);
        CHECK(sequences >= wanted);
        CHECK(sequences % share == 0);
        if (wanted % share == 0)
          CHECK(sequences == wanted);
        else
          CHECK((sequences == share || sequences / 2 < wanted));
      };
      least({}, model.batch_tokens / model.tokens);
      // A batch that grows has so many tokens for each GPU, and no fewer than the other number says.
      for (const Index per_gpu : {Index{1}, Index{5000}})
        for (const Index floor : {Index{0}, 300 * model.tokens})
          least({floor, per_gpu}, (std::max(floor, per_gpu * gpus) + model.tokens - 1) / model.tokens);
      CHECK(batch_sequences(model, gpus, {3 * model.tokens}) == 3);
    }
  const ModelShape& model = model_shape("8B");
  for (const int gpus : {64, 1024, 65536}) CHECK(batch_sequences(model, gpus, {}) == 256);  // it does not grow
  CHECK(batch_sequences(model, 96, {}) == 384);
  CHECK(usage_error([&] { batch_sequences(model, 8, {4097}); }) ==
        "--batch-tokens 4,097 is not a whole number of the sequences of 8B, which have 4,096 tokens; try 8,192");
  CHECK(usage_error([&] { batch_sequences(model, 8, {Index{4096} << 25}); }).find("more than 16,777,216 sequences") !=
        std::string::npos);
}

TEST_CASE("batch_text: tokens, sequences, and who has so many, or what the default is") {
  const ModelShape& model = model_shape("llama-7b");
  CHECK(batch_text(model, 1024) ==
        "4,194,304 tokens per step (1,024 sequences of 4,096), the default, which LLaMA has (arXiv 2302.13971, table "
        "2)");
  CHECK(batch_text(model, 1) ==
        "4,096 tokens per step (1 sequence of 4,096), where 4,194,304 is what LLaMA has (arXiv 2302.13971, table 2)");
}

TEST_CASE("possible_layouts: each uses all GPUs and the whole batch, cuts the model evenly, and is there once") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const char* name : {"gpt2", "8B", "qwen3-30b", "megatron-175b"})
    for (const int gpus : {1, 4, 8, 64, 96, 1024})
      for (const char* software : {"nanotron", "megatron"}) {
        LayoutSearch search{model_shape(name), cluster, software_of(software), gpus, {}, true};
        CAPTURE(name);
        CAPTURE(gpus);
        std::set<std::tuple<int, int, int, int, int>> seen;
        for (const TrainingLayout& layout : possible_layouts(search)) {
          CAPTURE(text(layout));
          REQUIRE(layout.ranks() == gpus);
          CHECK_NOTHROW(require_sensible(layout, std::min(gpus, cluster.node())));
          CHECK(batch_of(layout) == batch_sequences(search.model, gpus, {}));
          CHECK(layout.tp <= 64);
          CHECK(search.model.heads % layout.tp == 0);
          CHECK(layout.pp <= search.model.layers);
          CHECK(layout.accumulation >= layout.pp - 1);
          CHECK((layout.micro_batch == 1 || layout.micro_batch == 2 || layout.micro_batch == 4 ||
                 layout.micro_batch == 8));
          CHECK(layout.zero == 1);
          CHECK(layout.chunks == 1);
          if (search.model.experts.count == 0)
            CHECK(layout.ep == 1);
          else
            CHECK((search.model.experts.count % layout.ep == 0 && layout.dp % layout.ep == 0));
          CHECK(
              seen.insert({layout.dp, layout.tp, layout.pp, layout.micro_batch, static_cast<int>(layout.recomputation)})
                  .second);
        }
      }
}

TEST_CASE("possible_layouts: on one node of eight GPUs, 1B has these grids, and no others") {
  const Cluster cluster = cluster_of("h100-efa");
  std::set<GridSizes> grids;
  for (const TrainingLayout& layout : possible_layouts(search_with("1B", cluster, 8))) grids.insert(grid_of(layout));
  const std::set<GridSizes> expected = {{8, 1, 1}, {4, 1, 2}, {2, 1, 4}, {1, 1, 8}, {4, 2, 1},
                                        {2, 2, 2}, {1, 2, 4}, {2, 4, 1}, {1, 4, 2}, {1, 8, 1}};
  CHECK((grids == expected));
  // Fused attention keeps nothing that selective recomputation could drop.
  const auto selective = [&](const char* software) {
    const std::vector<TrainingLayout> all =
        possible_layouts({model_shape("1B"), cluster, software_of(software), 8, {}, true});
    return std::count_if(all.begin(), all.end(),
                         [](const TrainingLayout& layout) { return layout.recomputation == Recomputation::selective; });
  };
  CHECK((selective("nanotron") > 0) == !software_of("nanotron").fused_attention);
  CHECK((selective("megatron") > 0) == !software_of("megatron").fused_attention);
}

TEST_CASE("find_layouts: the fastest of all that is tried, one per grid, in order, and each fits") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const auto& [model, gpus, muon] :
       {std::tuple{"1B", 8, true}, {"8B", 16, true}, {"8B", 16, false}, {"qwen3-30b", 16, true}}) {
    CAPTURE(model);
    const LayoutSearch search = search_with(model, cluster, gpus, 64, muon);
    const std::map<GridSizes, double> least = least_seconds(search);
    const FoundLayouts found = find_layouts(search, 1000);
    CHECK(found.tried == static_cast<int>(possible_layouts(search).size()));
    CHECK(found.fit <= found.tried);
    REQUIRE(found.best.size() == least.size());
    std::set<GridSizes> seen;
    double before = 0;
    for (std::size_t i = 0; i < found.best.size(); ++i) {
      const FoundLayout& each = found.best[i];
      CAPTURE(text(each.layout));
      const double seconds = each.prediction.step_seconds();
      CHECK(seen.insert(grid_of(each.layout)).second);
      CHECK(each.prediction.fits);
      CHECK(fits(total(each.prediction.bytes), cluster, search.software));
      CHECK(before <= seconds);
      before = seconds;
      CHECK(each.strategy.has_value() == muon);
      // Of the first dozen, no strategy is faster.
      if (i < 12) CHECK(seconds == near(least.at(grid_of(each.layout))));
      // What is said of it is what is predicted of it.
      const StepQuestion question{search.model, cluster, search.software, each.layout};
      if (!muon) {
        CHECK(seconds == predict_adamw(question).step_seconds());
        continue;
      }
      CHECK(each.strategy->is_muon);
      CHECK(seconds == predict_muon(question, MuonSetup{*each.strategy}).step_seconds());
    }
  }
}

TEST_CASE("find_layouts: in order also where another strategy makes one layout overtake another") {
  // Slow links, and products that take about as long: of two layouts that are nearly as fast with matrices dealt out by
  // work, one gains more with boundary matrices gathered.
  Cluster cluster;
  cluster.name = "slow links";
  cluster.accelerator = {"unit", 376.325e12, 200 * kGibibyte, 3.35e12, {}, "made up"};
  cluster.accelerator.product_efficiency = {MeasuredCurve{{{1e9, 0.4}, {1e11, 0.75}}, "made up"}};
  cluster.levels = {{"node", 16, 4.7 * kGigabyte, 2.9e-6, {}, {}, "made up"},
                    {"all", 0, 0.5 * kGigabyte, 589.6e-6, {}, {}, "made up"}};
  const LayoutSearch search = search_with("1B", cluster, 128, 128);
  const FoundLayouts found = find_layouts(search, 1000);
  bool overtaken = false;
  double before = 0, before_by_work = 0;
  for (const FoundLayout& each : found.best) {
    const StepQuestion question{search.model, cluster, search.software, each.layout};
    const double seconds = each.prediction.step_seconds();
    const double by_work = predict_muon(question, MuonSetup()).step_seconds();
    CAPTURE(text(each.layout));
    CHECK(seconds >= before);
    CHECK(seconds <= by_work);
    overtaken = overtaken || by_work < before_by_work;
    before = seconds;
    before_by_work = by_work;
  }
  CHECK(overtaken);
  // As many as are asked for are the first ones of this order, also where it ends between the two.
  for (const int most : {7, 8}) {
    const FoundLayouts few = find_layouts(search, most);
    REQUIRE(few.best.size() == static_cast<std::size_t>(most));
    for (std::size_t i = 0; i < few.best.size(); ++i) {
      CHECK((grid_of(few.best[i].layout) == grid_of(found.best[i].layout)));
      CHECK(few.best[i].strategy->letter == found.best[i].strategy->letter);
    }
  }
}

TEST_CASE("find_layouts: numbers of GPUs and batches that can't be are refused in a sentence") {
  const Cluster cluster = cluster_of("h100-efa");
  const auto said = [&](const char* model, int gpus, int sequences = 0) {
    return usage_error([&] { find_layouts(search_with(model, cluster, gpus, sequences)); });
  };
  for (const int gpus : {0, -1, -8, std::numeric_limits<int>::min(), 9, 12, 1001}) {
    CAPTURE(gpus);
    CHECK(said("8B", gpus).find("is not a whole number of nodes of 8; try ") != std::string::npos);
  }
  CHECK(said("8B", 12) == "--gpus 12 is not a whole number of nodes of 8; try 8");
  for (const int gpus : {(1 << 20) + 8, std::numeric_limits<int>::max() - 7, std::numeric_limits<int>::max()}) {
    CAPTURE(gpus);
    CHECK(said("gpt2", gpus).find("is more than the 1,048,576") != std::string::npos);
  }
  // One sequence takes dp 1, and tp and pp do not go far enough.
  const std::string none = said("1B", 2048, 1);
  CHECK(none.find("no layout of 1B uses 2048 GPUs of h100-efa with 1 sequence in a batch") != std::string::npos);
}

TEST_CASE("find_layouts: where nothing fits, it says what the leanest layout needs") {
  const Cluster cluster = cluster_of("h100-efa");
  for (const bool muon : {true, false}) {
    const LayoutSearch search = search_with("80B", cluster, 8, 0, muon);
    double least = std::numeric_limits<double>::infinity();
    for (const TrainingLayout& layout : possible_layouts(search)) {
      const StepQuestion question{search.model, cluster, search.software, layout};
      least = std::min(least, total((muon ? predict_muon(question, MuonSetup()) : predict_adamw(question)).bytes));
    }
    char needed[64];
    std::snprintf(needed, sizeof needed, "the leanest needs %.1f GiB of 80.0", least / kGibibyte);
    const std::string said = usage_error([&] { find_layouts(search); });
    CAPTURE(said);
    CHECK(said.find(needed) != std::string::npos);
  }
}

TEST_CASE("why_slower: losses and gains from the largest on, which come to the difference") {
  const auto with_seconds = [](std::vector<Term> seconds) {
    FoundLayout found;
    found.prediction.seconds = std::move(seconds);
    return found;
  };
  const auto a = &terms::products, b = &terms::attention, gone = &terms::loss, fresh = &terms::host;
  const FoundLayout best = with_seconds({{a, 1}, {b, 0.5}, {gone, 0.1}});
  const FoundLayout other = with_seconds({{fresh, 0.2}, {a, 1.5}, {b, 0.2}, {fresh, 0.1}});
  CHECK(why_slower(best, other) ==
        "400 ms slower: it loses 500 ms by products of the layers, 300 ms by waiting for the host; it gains 300 ms by "
        "attention, 100 ms by loss");
  // What is below a tenth of the difference is left out.
  CHECK(why_slower(with_seconds({{a, 1}, {b, 1}}), with_seconds({{a, 3.1}, {b, 1.1}})) ==
        "2.2 s slower: it loses 2.1 s by products of the layers");
  CHECK(why_slower(with_seconds({{a, 1}}), with_seconds({{a, 1}})) == "0 ms slower");
}
