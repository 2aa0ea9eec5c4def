// What strategies refuse, what a monitor sees of them, and what goes on where a period was interrupted.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "src/comm/predicted_traffic.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/strategies/strategy_cost.hpp"
#include "src/optim/strategies/tp_cuts.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/optim/recorded_step.hpp"
#include "tests/sentence_of.hpp"
#include "tests/strategies/strategy_case.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// Tall and wide, cut into rows, columns and not at all.
std::vector<Parameter> dealt_parameters() {
  return {{"up", {12, 10}, SplitDim::rows},
          {"down", {6, 16}, SplitDim::columns},
          {"gate", {8, 18}, SplitDim::columns},
          {"free", {9, 5}},
          {"tall", {14, 4}, SplitDim::rows}};
}

double root_mean_square(const Matrix& a, const Matrix& b) {
  double squares = 0;
  for (Index i = 0; i < a.size(); ++i) squares += std::pow(double(a.data()[i]) - double(b.data()[i]), 2);
  return std::sqrt(squares / static_cast<double>(a.size()));
}

}  // namespace

TEST_CASE("(e): workers are dealt out over the matrices of all buffers, and what does not fit is refused") {
  std::vector<Parameter> parameters = dealt_parameters();
  parameters[1].group = parameters[3].group = 1;
  const Layout layout = all_to_all().lay_out(parameters, Grid().dp(3).tp(2), 0);
  const auto optimizer = all_to_all().optimizer(layout, MuonSettings(), 0);
  std::vector<Plan> plans;
  for (int rank = 0; rank < layout.grid.size(); ++rank)
    plans.push_back(optimizer->plan(layout, layout.grid.place(rank)));
  // In the order of the buffers: up, gate, tall; down, free. By work: up, gate, down, free, tall.
  const std::vector<Parameter> in_order = {parameters[0], parameters[2], parameters[4], parameters[1], parameters[3]};
  const std::vector<int> dealt = balanced_owners(in_order, 3);
  const int numbers[] = {0, 2, 4, 1, 3};
  for (std::size_t i = 0; i < 5; ++i) CHECK(worker_of(numbers[i], plans) == dealt[i]);

  const Layout alone = all_to_all().lay_out(parameters, Grid(), 0);
  std::vector<std::string> said(2);
  run_ranks(Grid(), [&](TestRank& rank) {
    const StepContext context{alone, rank.place, rank.dp, rank.tp};
    const auto started = all_to_all().optimizer(alone, MuonSettings(), 0);
    started->start(alone, rank.place, zero_buckets(alone));
    said[0] = sentence_of([&] { started->step(context, Buckets{{Flat(3)}, {Flat(4)}}); });
    Buckets weights = zero_buckets(alone);
    weights[1][0].resize(7);
    started->start(alone, rank.place, weights);
    said[1] = sentence_of([&] { started->step(context, zero_buckets(alone)); });
  });
  CHECK(said[0] ==
        "full_step was given gradients of 3 elements for bucket 0 of buffer 0, but the layout says 320; pack them "
        "with pack_buckets.");
  CHECK(said[1] ==
        "full_step was given weights of 7 elements for bucket 0 of buffer 1, but the layout says 141; pack them with "
        "pack_buckets.");
}

TEST_CASE("strategy_cost: a grid with pipeline stages is refused, and says what to do") {
  CHECK(sentence_of([] {
          strategy_cost(owner_by_work(), dealt_parameters(), Grid().tp(2).pp(3), 0, MuonSettings());
        }) == "strategy_cost was given pp 3; call it for each pipeline stage, with the stage's own parameters");
}

TEST_CASE("TpCuts: pieces and their direction for every cut; without TP there is one") {
  const Layout layout = plan_layout(dealt_parameters(), Grid().tp(2));
  const TpCuts cuts(layout), whole(plan_layout(dealt_parameters(), Grid()));
  CHECK(cuts.pieces("up") == 2);
  CHECK(cuts.by_rows("up"));
  CHECK(cuts.pieces("down") == 2);
  CHECK_FALSE(cuts.by_rows("down"));
  CHECK(cuts.pieces("free") == 1);
  CHECK_FALSE(cuts.by_rows("free"));
  CHECK(whole.pieces("up") == 1);
  const std::string end = " is not known; it is not in the layout that the optimizer was made for";
  CHECK(sentence_of([&] { cuts.pieces("other"); }) == "how TP cuts parameter \"other\"" + end);
  CHECK(sentence_of([&] { cuts.by_rows("another"); }) == "how TP cuts parameter \"another\"" + end);
  CHECK(slice_name(layout.meta("down"), 3) == "down, TP slice 3");
}

TEST_CASE(
    "a monitor: of every strategy, and of what overlaps or is one of several, sees weights and updates, for one "
    "all-reduce") {
  Case c;
  c.seed = 21;
  c.parameters = dealt_parameters();
  c.grid = Grid().dp(2).tp(2);
  c.options.bucket_capacity = 110;
  c.steps = 1;
  c.settings.weight_decay = 0;
  Case decays = c;
  decays.settings.weight_decay = 0.5f;
  struct Watched {
    std::string name;
    Case c;
    std::function<std::unique_ptr<Optimizer>(const MuonSettings&)> make;
  };
  std::vector<Watched> all;
  for (const Strategy& each : strategies()) {
    const Layout layout = each.lay_out(c.parameters, c.grid, 110);
    Case of = c;
    of.options = layout.options;
    for (int step = 0; step < each.period; ++step)
      all.push_back({each.name, of, [each, layout, step](const MuonSettings& settings) {
                       return each.optimizer(layout, settings, step);
                     }});
  }
  Case grouped = c;
  grouped.parameters[1].group = grouped.parameters[4].group = 1;
  all.push_back({"groups", grouped, [grouped](const MuonSettings& settings) {
                   const auto muon = [settings] { return std::make_unique<Muon>(settings); };
                   return std::make_unique<GroupedOptimizer>(
                       std::vector<ParameterGroup>{{"one", {}, muon}, {"two", {}, muon}}, grouped.parameters);
                 }});
  for (const Watched& each : all) {
    CAPTURE(each.name);
    const auto before = each.c.weights();
    const auto undecayed = reference_steps(each.c, *each.make(c.settings))[0];
    const auto after = reference_steps(each.c, *each.make(decays.settings))[0];
    const Layout layout = each.c.layout();
    std::vector<std::vector<ParameterRms>> seen(4);
    std::vector<Traffic> moved(4);
    run_ranks(each.c.grid, [&](TestRank& rank) {
      const auto optimizer = each.make(decays.settings);
      optimizer->start(layout, rank.place, pack_buckets(layout, pointers(before), rank.place.tp));
      RmsMonitor monitor(each.c.parameters);
      StepContext context{layout, rank.place, rank.dp, rank.tp};
      context.monitor = &monitor;
      optimizer->step(context, pack_buckets(layout, pointers(each.c.gradients(0, rank.place.dp)), rank.place.tp));
      rank.ledger = Ledger();
      const std::size_t r = static_cast<std::size_t>(rank.place.rank);
      seen[r] = monitor.reduce(rank.world);
      moved[r] = rank.ledger.total();
    });
    for (std::size_t r = 0; r < seen.size(); ++r) {
      CHECK(moved[r] == all_reduce_traffic(static_cast<int>(r), 4, 2 * 5, ElementType::float32));
      for (std::size_t p = 0; p < before.size(); ++p) {
        const Matrix none(before[p].matrix.rows(), before[p].matrix.cols());
        CHECK(seen[r][p].weights == doctest::Approx(root_mean_square(after[p].matrix, none)).epsilon(1e-5));
        CHECK(seen[r][p].update ==
              doctest::Approx(root_mean_square(undecayed[p].matrix, before[p].matrix)).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("block-wise: its plan, its reference and a second start go on from the steps that it has taken") {
  Case c;
  c.seed = 8;
  c.parameters = {{"up", {12, 10}, SplitDim::rows}, {"down", {6, 16}, SplitDim::columns}};
  c.grid = Grid().tp(2);
  c.steps = 1;
  const Layout layout = c.layout();
  const auto made_after = [&](int steps) { return block_wise().optimizer(layout, c.settings, steps); };
  const auto plan_after = [&](int steps) { return made_after(steps)->plan(layout, c.grid.place(1)).operations; };
  CHECK_FALSE(plan_after(0) == plan_after(1));
  CHECK(plan_after(2) == plan_after(0));
  CHECK(plan_after(3) == plan_after(1));
  std::vector<std::vector<Operation>> plans(6);
  std::vector<Matrix> stepped(5);
  run_ranks(c.grid, [&](TestRank& rank) {
    const auto optimizer = made_after(1);
    for (int step = 0; step < 5; ++step) {
      if (step == 3) optimizer->start(layout, rank.place, zero_buckets(layout));
      if (step == 0) optimizer->start(layout, rank.place, pack_buckets(layout, pointers(c.weights()), rank.place.tp));
      if (rank.place.rank == 1) {
        plans[static_cast<std::size_t>(step)] = optimizer->plan(layout, rank.place).operations;
        stepped[static_cast<std::size_t>(step)] = reference_steps(c, *optimizer)[0][0].matrix;
      }
      optimizer->step({layout, rank.place, rank.dp, rank.tp}, handed_gradients(c, layout, rank, 0, *optimizer));
    }
  });
  for (const std::size_t step : {0, 1, 2, 3, 4}) {
    CAPTURE(step);
    const int counted = 1 + static_cast<int>(step % 3);
    CHECK(plans[step] == plan_after(counted));
    CHECK(same_bits(stepped[step], reference_steps(c, *made_after(counted))[0][0].matrix));
  }
}
