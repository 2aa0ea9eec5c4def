// The comparison with the serial reference must be able to fail: each bug planted here has to be caught.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "src/optim/full_step.hpp"
#include "tests/optim/rank_threads.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

/// What a test breaks on purpose. An empty hook breaks nothing.
struct Sabotage {
  std::function<void(Layout&)> layout = nullptr;           ///< Weights and gradients are packed by this one, too.
  std::function<void(Layout&)> layout_of_steps = nullptr;  ///< The steps alone are taken with this one.
  std::function<void(int step, const Place&, Buckets& gradients)> gradients = nullptr;
  std::function<void(const Place&, MuonState&)> after_step = nullptr;
};

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

/// The first step, and the first rank, whose weights are not the reference's: "step 2, rank 0: a"; else empty.
std::string difference_with(const Sabotage& sabotage, Ownership ownership = Ownership::buckets) {
  Case c = healthy_case();
  c.options.ownership = ownership;
  Layout layout = c.layout();
  if (sabotage.layout) sabotage.layout(layout);
  Layout layout_of_steps = layout;
  if (sabotage.layout_of_steps) sabotage.layout_of_steps(layout_of_steps);
  const auto reference = reference_steps(c, Muon(c.settings));
  std::vector<std::string> differences(static_cast<std::size_t>(c.grid.size()));
  run_ranks(c.grid, [&](TestRank& rank) {
    MuonState state = initial_state(layout, pointers(c.weights()), rank.place);
    for (int step = 0; step < c.steps; ++step) {
      Buckets gradients = pack_buckets(layout, pointers(c.gradients(step, rank.place.dp)), rank.place.tp);
      if (sabotage.gradients) sabotage.gradients(step, rank.place, gradients);
      full_step({layout_of_steps, rank.place, rank.dp, rank.tp}, c.settings, gradients, state);
      if (sabotage.after_step) sabotage.after_step(rank.place, state);
      std::string& difference = differences[static_cast<std::size_t>(rank.place.rank)];
      const std::string name = first_difference(c, rank.place, unpack_buckets(c.layout(), state.weights, rank.place.tp),
                                                reference[static_cast<std::size_t>(step)]);
      if (difference.empty() && !name.empty())
        difference = "step " + std::to_string(step) + ", rank " + std::to_string(rank.place.rank) + ": " + name;
    }
  });
  std::sort(differences.begin(), differences.end());
  for (const std::string& difference : differences)
    if (!difference.empty()) return difference;
  return "";
}

DistMeta& parameter(Layout& layout, const std::string& name) { return const_cast<DistMeta&>(layout.meta(name)); }

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
    "planted bug: each TP slice orthogonalized alone, by an optimizer that does not know of the split, is caught") {
  Sabotage sabotage;
  sabotage.layout_of_steps = [](Layout& layout) {
    for (DistMeta& meta : layout.buffers[0].parameters) meta.tp_split_dim = SplitDim::none;
  };
  CHECK(difference_with(sabotage) != "");
}

TEST_CASE("planted bug: a shape other than the whole matrix's in the update's factor is caught") {
  Sabotage sabotage;
  sabotage.layout_of_steps = [](Layout& layout) {
    parameter(layout, "c").full_shape = {5, 6};  // the smallest change: one column
  };
  CHECK(difference_with(sabotage) == "step 0, rank 0: c");
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
  CHECK(difference_with(sabotage).find("step 2") == 0);
}

TEST_CASE("planted bug: a momentum that starts from zero in every step is caught one step later, in the DP group") {
  Sabotage sabotage;
  sabotage.after_step = [](const Place& place, MuonState& state) {
    if (place.rank != 2) return;
    for (auto& buffer : state.momentum) {
      for (Flat& shard : buffer) std::fill(shard.begin(), shard.end(), 0.0f);
    }
  };
  CHECK(difference_with(sabotage).find("step 1, rank 0: ") == 0);
}
