// What a step refuses before anything is sent, each thing by itself, in every kind of step; and what is left of an
// optimizer that is started a second time.
#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/momentum_sgd.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/optim/recorded_step.hpp"
#include "tests/sentence_of.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// 24 elements of DP rank 0, and 8 of rank 1, in a bucket.
Layout unequal_layout(const Grid& grid) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  options.ownership = Ownership::matrices;
  return plan_layout({{"a", {6, 4}}, {"b", {4, 2}}}, grid, options);
}

// What each rank of the grid says to this, [rank].
std::vector<std::string> said_by_ranks(const Grid& grid, const std::function<void(TestRank&)>& call) {
  std::vector<std::string> all(static_cast<std::size_t>(grid.size()));
  run_ranks(grid,
            [&](TestRank& rank) { all[static_cast<std::size_t>(rank.place.rank)] = sentence_of([&] { call(rank); }); });
  return all;
}

const std::string kPack = "; pack them with pack_buckets.";
const std::string kOwn = "; hand it what this rank owns of each bucket.";

using Step = std::function<void(const StepContext&, const Buckets& gradients, MuonState&)>;

std::vector<std::pair<std::string, Step>> muon_steps() {
  return {{"full_step", [](const StepContext& context, const Buckets& gradients, MuonState& state) {
             full_step(context, MuonSettings(), gradients, state);
           }}};
}

std::vector<MakeOptimizer> one_of_each() {
  MuonSettings handed;
  handed.summed_gradients = true;
  const std::vector<ParameterGroup> groups = {{"a", {}, [] { return std::make_unique<Muon>(MuonSettings()); }},
                                              {"b", {}, [] { return std::make_unique<Zero1AdamW>(AdamWSettings()); }},
                                              {"c", {}, [] { return std::make_unique<AdamW>(AdamWSettings()); }}};
  return {[] { return std::make_unique<Muon>(MuonSettings()); }, [handed] { return std::make_unique<Muon>(handed); },
          [] { return std::make_unique<AdamW>(AdamWSettings()); },
          [] { return std::make_unique<Zero1AdamW>(AdamWSettings()); },
          [groups] {
            return std::make_unique<GroupedOptimizer>(
                groups, std::vector<Parameter>{{"a", {6, 4}}, {"b", {4, 2}, SplitDim::none, 1}, {"c", {3, 5}}});
          }};
}

Case case_of_groups() {
  Case c;
  c.seed = 5;
  c.parameters = {{"a", {6, 4}}, {"b", {4, 2}, SplitDim::none, 1}, {"c", {3, 5}}};
  c.grid = Grid().dp(2);
  return c;
}

}  // namespace

TEST_CASE("steps of Muon: weights, momentum and gradients that do not fit are refused, each by itself") {
  const Grid grid = Grid().dp(2);
  const Layout layout = unequal_layout(grid);
  for (const auto& [name, step] : muon_steps()) {
    CAPTURE(name);
    const auto with = [&, step = step](const Buckets& gradients, const std::function<void(MuonState&)>& change) {
      return said_by_ranks(grid, [&](TestRank& rank) {
        MuonState state{zero_buckets(layout), zero_shards(layout, rank.place.dp)};
        change(state);
        step({layout, rank.place, rank.dp, rank.tp}, gradients, state);
      });
    };
    const Buckets whole = zero_buckets(layout);
    const auto weights = with(whole, [](MuonState& state) { state.weights[0][0].resize(31); });
    const auto momentum = with(whole, [&](MuonState& state) { state.momentum = whole; });
    const auto gradients = with(zero_shards(layout, 0), [](MuonState&) {});
    const std::string begin = name + " was given ", where = " for bucket 0 of buffer 0, but the layout says ";
    for (const std::size_t r : {0, 1}) {
      CHECK(weights[r] == begin + "weights of 31 elements" + where + "32" + kPack);
      CHECK(momentum[r] == begin + "momentum of 32 elements" + where + (r == 0 ? "24" : "8") + kOwn);
      CHECK(gradients[r] == begin + "gradients of 24 elements" + where + "32" + kPack);
    }
  }
}

TEST_CASE("steps of Muon: a rank that is another one in its groups, which are as large as they should be, is refused") {
  for (const auto& [name, step] : muon_steps()) {
    CAPTURE(name);
    for (const bool tp : {false, true}) {
      const Grid grid = tp ? Grid().tp(2) : Grid().dp(2);
      const Layout layout = unequal_layout(grid);
      const auto said = said_by_ranks(grid, [&, step = step](TestRank& rank) {
        const Place other = grid.place(1 - rank.place.rank);
        MuonState state{zero_buckets(layout), zero_shards(layout, other.dp)};
        step({layout, other, rank.dp, rank.tp}, zero_buckets(layout), state);
      });
      const std::string group = tp ? "tp" : "dp";
      for (const std::size_t r : {0, 1})
        CHECK(said[r] == name + " was given rank " + std::to_string(r) + " of a " + group +
                             " group of 2, but in the layout's grid it is " + group + " " + std::to_string(1 - r) +
                             " of 2; hand it the rank's own " + group + " group.");
    }
  }
}

TEST_CASE("AdamW: what was started with another layout, or is handed shards, is refused, and not counted as a step") {
  const Layout layout = unequal_layout(Grid()), smaller = plan_layout({{"a", {6, 4}}}, Grid(), layout.options);
  for (const bool wrong_weights : {true, false}) {
    const auto said = said_by_ranks(Grid(), [&](TestRank& rank) {
      AdamW optimizer{AdamWSettings()};
      const Layout& of = wrong_weights ? smaller : layout;
      optimizer.start(of, rank.place, zero_buckets(of));
      const std::string sentence = sentence_of([&] {
        optimizer.step({layout, rank.place, rank.dp, rank.tp}, zero_buckets(smaller));
      });
      if (optimizer.save().steps != 0) throw std::logic_error("it was counted");
      throw std::invalid_argument(sentence);
    });
    CHECK(said[0] == std::string("AdamW was given ") + (wrong_weights ? "weights" : "gradients") +
                         " of 24 elements for bucket 0 of buffer 0, but the layout says 32" + kPack);
  }
}

TEST_CASE("ZeRO-1 AdamW and groups: what was started as another rank, or with another layout, is refused") {
  const Grid grid = Grid().dp(2);
  const Layout layout = unequal_layout(grid);
  const auto moments = said_by_ranks(grid, [&](TestRank& rank) {
    Zero1AdamW optimizer{AdamWSettings()};
    optimizer.start(layout, grid.place(1 - rank.place.rank), zero_buckets(layout));
    optimizer.step({layout, rank.place, rank.dp, rank.tp}, zero_buckets(layout));
  });
  for (const std::size_t r : {0, 1})
    CHECK(moments[r] == "Zero1AdamW was given first moments of " + std::string(r == 0 ? "8" : "24") +
                            " elements for bucket 0 of buffer 0, but the layout says " + (r == 0 ? "24" : "8") + kOwn);
  const Layout smaller = plan_layout({{"a", {6, 4}}}, grid, layout.options);
  const Layout wider = plan_layout({{"a", {8, 4}}}, grid, layout.options);
  const std::vector<ParameterGroup> groups = {{"a", {}, [] { return std::make_unique<Muon>(MuonSettings()); }}};
  for (const bool grouped : {false, true}) {
    const auto weights = said_by_ranks(grid, [&](TestRank& rank) {
      std::unique_ptr<Optimizer> optimizer = std::make_unique<Zero1AdamW>(AdamWSettings());
      if (grouped) optimizer = std::make_unique<GroupedOptimizer>(groups, std::vector<Parameter>{{"a", {6, 4}}});
      optimizer->start(smaller, rank.place, zero_buckets(smaller));
      optimizer->step({wider, rank.place, rank.dp, rank.tp}, zero_buckets(wider));
    });
    for (const std::string& sentence : weights)
      CHECK(sentence == std::string(grouped ? "GroupedOptimizer" : "Zero1AdamW") +
                            " was given weights of 24 elements for bucket 0 of buffer 0, but the layout says 32" +
                            kPack);
  }
}

TEST_CASE("start: a second time, after any number of steps, leaves nothing of what was there before") {
  const Case c = case_of_groups();
  const Layout layout = c.layout();
  for (const MakeOptimizer& make : one_of_each()) {
    std::vector<std::string> wrong(2);
    run_ranks(c.grid, [&](TestRank& rank) {
      const auto weights = [&] { return pack_buckets(layout, pointers(c.weights()), rank.place.tp); };
      const auto used = make(), fresh = make();
      for (const bool again : {false, true}) {
        used->start(layout, rank.place, weights());
        fresh->start(layout, rank.place, weights());
        std::string& complaint = wrong[static_cast<std::size_t>(rank.place.rank)];
        if (complaint.empty()) complaint = first_difference(used->save(), fresh->save());
        if (used->weights().size() != layout.buffers.size()) complaint = "buffers";
        for (int step = 0; step < 2 && !again; ++step)
          used->step({layout, rank.place, rank.dp, rank.tp}, handed_gradients(c, layout, rank, step, *used));
      }
    });
    for (const std::string& each : wrong) CHECK(each == "");
  }
}

TEST_CASE("groups: a third that disagrees, a group below 0, and gradients for more parameters than there are") {
  AdamWSettings handed;
  handed.summed_gradients = true;
  const auto muon = [] { return std::make_unique<Muon>(MuonSettings()); };
  const std::vector<Parameter> parameters = {{"a", {6, 4}}, {"b", {4, 2}, SplitDim::none, 1}};
  CHECK(
      sentence_of([&] {
        GroupedOptimizer(
            {{"one", {}, muon}, {"two", {}, muon}, {"three", {}, [&] { return std::make_unique<Zero1AdamW>(handed); }}},
            parameters);
      }) ==
      "the optimizers of the groups \"one\" and \"three\" do not agree on whether gradients are summed before a step; "
      "set summed_gradients for all or for none");
  GroupedOptimizer two({{"one", {}, muon}, {"two", {}, muon}}, parameters);
  Layout layout = plan_layout(parameters, Grid());
  layout.buffers[1].group = -1;
  CHECK(sentence_of([&] { two.start(layout, Grid().place(0), zero_buckets(layout)); }) ==
        "the layout has a buffer of parameter group -1, but there are 2 groups, counted from 0; plan it from routed "
        "parameters");
  const auto reference = two.reference({{"a", Matrix(6, 4)}, {"b", Matrix(4, 2)}});
  CHECK(usage_error([&] {
          reference->step({{Matrix(6, 4), Matrix(4, 2), Matrix(1, 1)}});
        }) == "Leaf 0 holds the gradients of 3 parameters, but there are 2; give one gradient per parameter.");
  CHECK_FALSE(GroupedOptimizer({}, {}).takes_summed_gradients());
  CHECK(GroupedOptimizer({{"one", {}, [&] { return std::make_unique<Zero1AdamW>(handed); }}}, {})
            .takes_summed_gradients());
}

TEST_CASE(
    "gather_from_owners: who owns all of a slice keeps its bits; who shares it gets all, rounded where bf16 travels") {
  const Grid grid = Grid().dp(2);
  const Layout layout =
      plan_layout({{"a", {3, 3}}, {"b", {3, 3}}, {"c", {2, 2}}}, grid, {0, 1, 1, Ownership::buckets, {}});
  Matrix a(3, 3), b(3, 3), c(2, 2);
  float next = 0.1f;
  for (Matrix* each : {&a, &b, &c})
    for (float& value : each->flat()) value = (next *= 1.37f);
  const Flat whole = pack_buckets(layout, {&a, &b, &c}, 0)[0][0];
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    std::vector<Matrix> alone(2), shared(2);
    std::vector<Traffic> moved(2);
    run_ranks(grid, [&](TestRank& rank) {
      const std::size_t r = static_cast<std::size_t>(rank.place.dp);
      const Flat shard(whole.begin() + 11 * rank.place.dp, whole.begin() + 11 * rank.place.dp + 11);
      alone[r] = gather_from_owners(rank.dp, shard, layout, layout.meta(r == 0 ? "a" : "c"), precision);
      if (!rank.ledger.lines().empty()) throw std::logic_error("something travelled");
      shared[r] = gather_from_owners(rank.dp, shard, layout, layout.meta("b"), precision);
      moved[r] = rank.ledger.total();
    });
    CHECK(same_bits(alone[0], a));
    CHECK(same_bits(alone[1], c));
    Matrix rounded = b;
    if (precision == Precision::bf16) round_to_bf16(rounded.data(), rounded.size());
    const Index bytes = precision == Precision::bf16 ? 2 : 4;
    for (const std::size_t r : {0, 1}) {
      CHECK(same_bits(shared[r], rounded));
      const Index own = r == 0 ? 2 : 7;
      CHECK(moved[r] == Traffic{own * bytes, (9 - own) * bytes, 1, 1});
    }
  }
}
