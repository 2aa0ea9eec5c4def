// The comparison with the serial reference must be able to fail: each bug planted here has to be caught.
#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>

#include "tests/optim/against_serial.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

/// Square and not square, all three splits; on dp 2 × tp 2 both DP ranks own a part of something split.
Case healthy_case() {
  Case c;
  c.seed = 5;
  c.parameters = {
      {"a", {8, 8}, SplitDim::rows}, {"b", {12, 6}, SplitDim::columns}, {"c", {5, 7}}, {"d", {10, 20}, SplitDim::rows}};
  c.grid = Grid().dp(2).tp(2);
  c.steps = 3;
  return c;
}

std::string difference_with(const Sabotage& sabotage, Ownership ownership = Ownership::buckets) {
  Case c = healthy_case();
  c.options.ownership = ownership;
  return first_difference(c, run_distributed(c, sabotage), run_serial(c, 1));
}

DistMeta& parameter(Layout& layout, const std::string& name) {
  for (Buffer& buffer : layout.buffers) {
    for (DistMeta& meta : buffer.parameters) {
      if (meta.name == name) return meta;
    }
  }
  throw std::logic_error("no parameter " + name);
}

}  // namespace

TEST_CASE("planted bugs: without one, nothing differs, whoever owns what") {
  for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices})
    CHECK(difference_with({}, ownership) == "");
}

TEST_CASE("planted bug: a wrong split dimension is caught") {
  // The gather lays the slices side by side along the wrong dimension. The shapes still fit, only the values are wrong.
  Sabotage sabotage;
  sabotage.layout = [](Layout& layout) {
    DistMeta& meta = parameter(layout, "a");
    meta.tp_split_dim = SplitDim::columns;
    meta.shape = {8, 4};
  };
  for (const Ownership ownership : {Ownership::buckets, Ownership::buffer, Ownership::matrices})
    CHECK(difference_with(sabotage, ownership) != "");
}

TEST_CASE(
    "planted bug: a split that is not known to the optimizer, so that each TP slice is orthogonalized alone, is "
    "caught") {
  const Case c = healthy_case();
  Layout layout = c.layout();
  const std::vector<NamedMatrix> weights = c.weights();
  std::vector<std::vector<Snapshot>> ranks(static_cast<std::size_t>(c.grid.size()));
  run_ranks(c.grid, [&](TestRank& rank) {
    MuonState state = initial_state(layout, pointers(weights), rank.place);
    Layout blind = layout;
    for (DistMeta& meta : blind.buffers[0].parameters) meta.tp_split_dim = SplitDim::none;
    for (int step = 0; step < c.steps; ++step) {
      const Buckets gradients = pack_buckets(layout, pointers(c.gradients(step, rank.place.dp)), rank.place.tp);
      full_step({blind, rank.place, rank.dp, rank.tp}, c.settings, gradients, state);
      ranks[rank.place.rank].push_back({state, {}});
    }
  });
  CHECK(first_difference(c, ranks, run_serial(c, 1)) != "");
}

TEST_CASE("planted bug: the slice's shape in place of the whole matrix's in the update's factor is caught") {
  const Case c = healthy_case();
  const Layout layout = c.layout();
  const std::vector<NamedMatrix> weights = c.weights();
  std::vector<std::vector<Snapshot>> ranks(static_cast<std::size_t>(c.grid.size()));
  run_ranks(c.grid, [&](TestRank& rank) {
    MuonState state = initial_state(layout, pointers(weights), rank.place);
    Layout wrong = layout;
    parameter(wrong, "c").full_shape = {5, 6};  // the smallest change: one column
    for (int step = 0; step < c.steps; ++step) {
      const Buckets gradients = pack_buckets(layout, pointers(c.gradients(step, rank.place.dp)), rank.place.tp);
      full_step({wrong, rank.place, rank.dp, rank.tp}, c.settings, gradients, state);
      ranks[rank.place.rank].push_back({state, {}});
    }
  });
  CHECK(first_difference(c, ranks, run_serial(c, 1)) != "");
}

TEST_CASE("planted bug: one bit of one gradient is caught") {
  Sabotage sabotage;
  sabotage.gradients = [](int step, const Place& place, Buckets& gradients) {
    if (step != 2 || place.rank != 0) return;
    std::uint32_t bits = 0;
    std::memcpy(&bits, &gradients[0][0][3], sizeof bits);
    bits ^= 1u << 20;
    std::memcpy(&gradients[0][0][3], &bits, sizeof bits);
  };
  CHECK(difference_with(sabotage).find("after step 2") == 0);
}

TEST_CASE("planted bug: a momentum that starts from zero in every step is caught") {
  Sabotage sabotage;
  sabotage.after_step = [](int, const Place& place, const MuonState&, MuonState& state) {
    if (place.rank != 2) return;
    for (auto& buffer : state.momentum) {
      for (Flat& shard : buffer) std::fill(shard.begin(), shard.end(), 0.0f);
    }
  };
  CHECK(difference_with(sabotage).find("after step 0 on rank 2 the momentum shards differ") == 0);

  // Seen through the weights alone, it shows one step later, and on the rank's whole DP group.
  const Case c = healthy_case();
  auto ranks = run_distributed(c, sabotage);
  const auto healthy = run_distributed(c);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (std::size_t step = 0; step < ranks[r].size(); ++step) {
      ranks[r][step].state.momentum = healthy[r][step].state.momentum;
    }
  }
  CHECK(first_difference(c, ranks, run_serial(c, 1)).find("after step 1 on rank 0 the weights") == 0);
}
