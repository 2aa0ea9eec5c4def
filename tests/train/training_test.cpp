#include "src/train/training.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/steps.hpp"
#include "src/train/models.hpp"
#include "tests/optim/momentum_sgd.hpp"
#include "tests/optim/rank_fibers.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

std::unique_ptr<Optimizer> muon() { return std::make_unique<Muon>(MuonSettings()); }

// A source whose gradients are a function of the weights: each leaf pulls them towards a target of its own, ½ |w − t|².
class Pull : public RandomTraining {
 public:
  Pull(std::vector<Parameter> parameters, int steps, std::uint64_t seed)
      : RandomTraining(std::move(parameters), steps, seed) {}
  std::vector<Matrix> gradients(int step, int leaf, const std::vector<NamedMatrix>& held) const override {
    std::vector<Matrix> pulls = RandomTraining::gradients(step, leaf, held);  // the targets
    for (std::size_t i = 0; i < held.size(); ++i)
      for (Index row = 0; row < pulls[i].rows(); ++row)
        for (Index col = 0; col < pulls[i].cols(); ++col)
          pulls[i](row, col) = held[i].matrix(row, col) - pulls[i](row, col);
    return pulls;
  }
};

}  // namespace

TEST_CASE("Training: gradients that depend on the weights: every optimizer, grid and ownership has the serial bits") {
  constexpr int kSteps = 4;
  const Pull data(small_parameters(), kSteps, 11);
  const std::vector<std::function<std::unique_ptr<Optimizer>()>> optimizers = {
      [] { return std::make_unique<Muon>(MuonSettings()); }, [] { return std::make_unique<AdamW>(AdamWSettings()); },
      [] { return std::make_unique<momentum_sgd::Distributed>(); }};
  for (const auto& make : optimizers)
    for (const Grid& grid : {Grid(), Grid().dp(2), Grid().dp(3), Grid().tp(4), Grid().dp(2).tp(2), Grid().dp(4).tp(2)})
      for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices}) {
        CAPTURE(make()->name());
        CAPTURE(grid.text());
        CAPTURE(ownership_name(ownership));
        LayoutOptions options;
        options.bucket_capacity = 2000;
        options.ownership = ownership;
        const Layout layout = plan_layout(data.parameters(), grid, options);
        std::vector<std::vector<std::vector<NamedMatrix>>> held(static_cast<std::size_t>(grid.size()));  // [rank][step]
        run_ranks(grid, [&](TestRank& rank) {
          const auto optimizer = make();
          optimizer->start(layout, rank.place, first_buckets(layout, data, rank.place.tp));
          for (int step = 0; step < kSteps; ++step) {
            const auto mine = unpack_buckets(layout, optimizer->weights(), rank.place.tp);
            const auto own = data.own_gradients(step, grid.dp(), rank.place.dp, mine);
            optimizer->step({layout, rank.place, rank.dp, rank.tp}, pack_slices(layout, own));
            held[static_cast<std::size_t>(rank.place.rank)].push_back(
                unpack_buckets(layout, optimizer->weights(), rank.place.tp));
          }
        });
        ReferenceRun reference(data, make());
        for (int step = 1; step <= kSteps; ++step)
          for (int r = 0; r < grid.size(); ++r)
            for (std::size_t p = 0; p < data.parameters().size(); ++p) {
              const NamedMatrix expected = reference.slices_after(step, grid, grid.place(r))[p];
              REQUIRE(same_bits(held[r][step - 1][p].matrix, expected.matrix));
            }
      }
}

TEST_CASE("Training: a rank that asks with the weights of the step before is caught") {
  const Pull data(small_parameters(), 2, 11);
  const Layout layout = plan_layout(data.parameters(), Grid());
  std::vector<NamedMatrix> held;
  run_ranks(Grid(), [&](TestRank& rank) {
    Muon stale{MuonSettings()};
    stale.start(layout, rank.place, first_buckets(layout, data, 0));
    for (int step = 0; step < 2; ++step)
      stale.step({layout, rank.place, rank.dp, rank.tp},
                 pack_slices(layout, data.own_gradients(step, 1, 0, data.first_weights())));
    held = unpack_buckets(layout, stale.weights(), 0);
  });
  CHECK_FALSE(same_bits(held[0].matrix, ReferenceRun(data, muon()).after(2, 1)[0].matrix));
}

TEST_CASE("first_buckets: any grid and stage: the slices of the parameters that a layout names") {
  const RandomTraining data(small_parameters(), 1, 2);
  const std::vector<Parameter> stage = {data.parameters()[3], data.parameters()[1]};
  const Layout layout = plan_layout(stage, Grid().dp(2).tp(2));
  const auto slices = unpack_buckets(layout, first_buckets(layout, data, 1), 1);
  CHECK(same_bits(slices[0].matrix, named_slice(stage[0], data.weights(3), 2, 1).matrix));
  CHECK(same_bits(slices[1].matrix, named_slice(stage[1], data.weights(1), 2, 1).matrix));
  CHECK_THROWS_WITH_AS(first_buckets(plan_layout({{"nobody", {4, 4}}}, Grid()), data, 0),
                       "\"nobody\" is not one of the trained parameters", std::invalid_argument);
}

TEST_CASE("RandomTraining: no two tensors share their numbers") {
  const RandomTraining data({{"a", {4, 4}, SplitDim::none}, {"b", {4, 4}, SplitDim::none}}, 3, 1);
  std::vector<Matrix> tensors = {data.weights(0), data.weights(1)};
  for (int step = 0; step < 3; ++step)
    for (const auto& leaf : data.all_leaves(step, 4, data.first_weights()))
      tensors.insert(tensors.end(), leaf.begin(), leaf.end());
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK_FALSE(same_bits(tensors[i], tensors[j]));
}

TEST_CASE("ReferenceRun: keeps as much after 60 steps as after 3, and has the same bits whatever it keeps") {
  const RandomTraining data({{"a", {24, 20}, SplitDim::none}, {"b", {10, 30}, SplitDim::none}}, 60, 5);
  const auto held_after = [&](int steps) {
    MemoryMeter meter;
    const MeterScope scope(meter);
    ReferenceRun run(data, muon(), 2 * 780);  // two results fit
    for (int step = 1; step <= steps; ++step) run.after(step, 2);
    return meter.live();
  };
  CHECK(held_after(60) == held_after(3));

  ReferenceRun all(data, muon()), few(data, muon(), 2 * 780), none(data, muon(), 0);
  for (const int step : {1, 2, 3, 4, 7, 7, 2, 5, 1, 9})
    for (std::size_t p = 0; p < 2; ++p) {
      CAPTURE(step);
      const Matrix expected = all.after(step, 2)[p].matrix;
      CHECK(same_bits(few.after(step, 2)[p].matrix, expected));
      CHECK(same_bits(none.after(step, 2)[p].matrix, expected));
    }
}

TEST_CASE("stage_parameters: every parameter belongs to one stage, and stages differ by at most one parameter") {
  for (int parameters = 1; parameters <= 20; ++parameters)
    for (int stages = 1; stages <= parameters; ++stages) {
      Index next = 0;
      for (int stage = 0; stage < stages; ++stage) {
        const Range range = stage_parameters(parameters, stages, stage);
        CHECK(range.begin == next);
        CHECK(range.size() >= parameters / stages);
        CHECK(range.size() <= (parameters + stages - 1) / stages);
        next = range.end;
      }
      CHECK(next == parameters);
    }
}

TEST_CASE("join_held_slices: gives back the whole matrices, for any tp and pp, whatever DP ranks above 0 hold") {
  const RandomTraining data(small_parameters(), 1, 7);
  for (int tp : {1, 2, 4})
    for (int pp : {1, 2, 3}) {
      CAPTURE(tp);
      CAPTURE(pp);
      const Grid grid = Grid().dp(2).tp(tp).pp(pp);
      std::vector<std::vector<NamedMatrix>> held(static_cast<std::size_t>(grid.size()));
      for (int rank = 0; rank < grid.size(); ++rank) {
        const Place place = grid.place(rank);
        const Range mine = stage_parameters(static_cast<int>(data.parameters().size()), pp, place.pp);
        for (Index p = mine.begin; p < mine.end && place.dp == 0; ++p)
          held[rank].push_back(named_slice(data.parameters()[p], data.weights(static_cast<int>(p)), tp, place.tp));
      }
      const std::vector<Matrix> whole = join_held_slices(data.parameters(), grid, held);
      REQUIRE(whole.size() == data.parameters().size());
      for (std::size_t p = 0; p < whole.size(); ++p) CHECK(whole[p].flat() == data.weights(static_cast<int>(p)).flat());
    }
}
