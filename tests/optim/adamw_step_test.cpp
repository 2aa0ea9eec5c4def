// Data-parallel AdamW against the serial reference, bit for bit, and its bytes against the prediction.
#include "src/optim/adamw_step.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

#include "src/optim/named_slice.hpp"
#include "src/train/compared_optimizers.hpp"
#include "src/train/serial_adamw.hpp"
#include "tests/optim/rank_threads.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

constexpr int kSteps = 3;

// What each rank of a grid holds in the end, and what it counted.
struct Trained {
  std::vector<std::vector<NamedMatrix>> slices;
  std::vector<Ledger> ledgers;
  std::vector<Index> elements;
};

Trained train(OptimizerKind kind, const Grid& grid, const TrainingData& data, const LayoutOptions& options) {
  const std::size_t ranks = static_cast<std::size_t>(grid.size());
  Trained trained{std::vector<std::vector<NamedMatrix>>(ranks), std::vector<Ledger>(ranks), std::vector<Index>(ranks)};
  run_ranks(grid, [&](TestRank& rank) {
    const Layout layout = plan_layout(data.parameters(), grid, options);
    OptimizerState state = initial_state(kind, layout, data, rank.place.tp);
    std::vector<int> all;
    for (std::size_t p = 0; p < data.parameters().size(); ++p) all.push_back(static_cast<int>(p));
    for (int step = 0; step < kSteps; ++step)
      optimizer_step(layout, rank.place, rank.dp, rank.tp, MuonSettings(),
                     pack_slices(layout, own_gradient_slices(data, all, step, grid, rank.place)), step + 1, state);
    const std::size_t r = static_cast<std::size_t>(rank.place.rank);
    trained.slices[r] = unpack_buckets(layout, weights_of(state), rank.place.tp);
    trained.ledgers[r] = rank.ledger;
    trained.elements[r] = state_elements(state);
  });
  return trained;
}

}  // namespace

TEST_CASE("both optimizers, any grid, one bucket or several: the serial weights, the predicted bytes, the state") {
  const RandomTraining data(small_parameters(), kSteps, 7);
  LayoutOptions buckets;
  buckets.bucket_capacity = 500;
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon})
    for (const Grid& grid : {Grid(), Grid().dp(2), Grid().dp(3), Grid().dp(4), Grid().tp(4), Grid().dp(2).tp(2)})
      for (const LayoutOptions& options : {LayoutOptions(), buckets}) {
        CAPTURE(optimizer_name(kind));
        CAPTURE(grid.text());
        const Trained trained = train(kind, grid, data, options);
        const Layout layout = plan_layout(data.parameters(), grid, options);
        for (int r = 0; r < grid.size(); ++r) {
          const std::size_t at = static_cast<std::size_t>(r);
          const auto expected = serially_trained(kind, data, kSteps, grid, grid.place(r), MuonSettings());
          REQUIRE(trained.slices[at].size() == expected.size());
          for (std::size_t p = 0; p < expected.size(); ++p)
            CHECK(same_bits(trained.slices[at][p].matrix, expected[p].matrix));
          Ledger predicted;
          predicted.add(predict_optimizer_step(kind, layout, grid.place(r), MuonSettings()), kSteps);
          CHECK(first_difference(predicted, trained.ledgers[at]) == "");
          Index size = 0;
          for (const Buffer& buffer : layout.buffers) size += buffer.size;
          CHECK(trained.elements[at] == (kind == OptimizerKind::adamw ? 2 * size : layout.shard_elements()));
        }
      }
}

TEST_CASE("serial AdamW: one matrix, one step, as the formula has it") {
  const RandomTraining data({{"w", {2, 3}, SplitDim::none, 0}}, 1, 5);
  const auto leaves = data.all_leaves(0, 1);
  REQUIRE(leaves.size() == 4);
  AdamWState state = initial_adamw_state(data.weights(0).flat());
  Flat sum(6);
  for (Index i = 0; i < 6; ++i)  // the tree over four leaves
    sum[i] = (leaves[0][0].flat()[i] + leaves[1][0].flat()[i]) + (leaves[2][0].flat()[i] + leaves[3][0].flat()[i]);
  adamw(state, sum, 1, AdamWSettings());
  CHECK(same_bits(serial_adamw(data, 1, 1, AdamWSettings())[0].matrix, Matrix(2, 3, state.weights)));
  CHECK_THROWS_AS(serial_adamw(data, 2, 1, AdamWSettings()), std::invalid_argument);
}

TEST_CASE("AdamW step: gradients of another layout are refused, and phases are announced in order") {
  run_ranks(Grid(), [](TestRank& rank) {
    AdamWBuckets state = initial_adamw_buckets({{Flat(4)}});
    std::string phases;
    adamw_step(rank.dp, {{Flat(4)}}, state, 1, AdamWSettings(),
               [&](const char* phase) { phases += phase + std::string("; "); });
    if (phases != "all-reduce of gradients; AdamW; ") throw std::logic_error("phases: " + phases);
    for (const Buckets& wrong : {Buckets{}, Buckets{{}}, Buckets{{Flat(4), Flat(4)}}, Buckets{{Flat(3)}}}) {
      bool refused = false;
      try {
        adamw_step(rank.dp, wrong, state, 2, AdamWSettings());
      } catch (const std::invalid_argument&) {
        refused = true;
      }
      if (!refused) throw std::logic_error("gradients of another layout were taken");
    }
  });
}
