// What every optimizer plans for ranks of a small grid, operation by operation, as it is kept in tests/golden; and what
// is folded out of plans.
#include "tests/optim/plan_listing.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>

#include "src/comm/predicted_traffic.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/optim/overlapped_step.hpp"
#include "src/optim/parameter_groups.hpp"
#include "src/optim/plan_memory.hpp"
#include "src/optim/zero1_adamw.hpp"
#include "tests/golden/golden_text.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// Tall and wide, cut into rows, columns and not at all, in two groups.
std::vector<Parameter> listed_parameters() {
  return {{"up", {12, 10}, SplitDim::rows},
          {"down", {6, 16}, SplitDim::columns},
          {"norm", {1, 7}, SplitDim::none, 1, 1},
          {"gate", {8, 18}, SplitDim::columns},
          {"free", {9, 5}}};
}

Layout listed_layout(const Grid& grid, Ownership ownership) {
  LayoutOptions options;
  options.bucket_capacity = 100;
  options.parameter_alignment = 3;
  options.ownership = ownership;
  return plan_layout(listed_parameters(), grid, options);
}

}  // namespace

TEST_CASE("plans: of every optimizer, operation by operation") {
  const Grid grid = Grid().dp(3).tp(2);
  MuonSettings plain, bf16, cut, summed, recipe;
  bf16.precision = Precision::bf16;
  bf16.ns_steps = 3;
  bf16.fused["down"] = {{"a", {{0, 2}, {4, 5}}}, {"b", {{2, 4}, {5, 6}}}};
  cut.gather = Gather::cut_matrices;
  cut.precision = Precision::bf16;
  summed.summed_gradients = true;
  summed.gather_unrounded = true;
  summed.precision = Precision::bf16;
  recipe.lerp = recipe.decay_subtracts = true;
  recipe.scaling = Scaling::thrice;
  AdamWSettings handed;
  handed.summed_gradients = true;
  const std::vector<ParameterGroup> groups = {{"a", {}, [plain] { return std::make_unique<Muon>(plain); }},
                                              {"b", {}, [] { return std::make_unique<Zero1AdamW>(AdamWSettings()); }}};
  std::string all;
  const auto list = [&all, &grid](const std::string& name, const Optimizer& optimizer, Ownership ownership, int rank) {
    const Layout layout = listed_layout(grid, ownership);
    all += name + ", " + ownership_name(ownership) + ": " + listing_of(optimizer.plan(layout, grid.place(rank)));
  };
  list("Muon", Muon(plain), Ownership::buckets, 3);
  list("Muon in bf16, in pieces", Muon(bf16), Ownership::buckets, 0);
  list("Muon in bf16, in pieces", Muon(bf16), Ownership::matrices, 2);
  list("Muon, cut matrices", Muon(cut), Ownership::buffer, 2);
  list("Muon, cut matrices", Muon(cut), Ownership::buckets, 5);
  list("Muon of sums", Muon(summed), Ownership::buffer, 4);
  list("Muon with a recipe", Muon(recipe), Ownership::matrices, 5);
  list("Muon that overlaps", OverlappedMuon(plain, Schedule::in_sequence), Ownership::buffer, 2);
  list("Muon that overlaps", OverlappedMuon(bf16, Schedule::pipelined), Ownership::buckets, 5);
  list("Muon that overlaps", OverlappedMuon(bf16, Schedule::all_at_once), Ownership::matrices, 1);
  list("AdamW", AdamW(AdamWSettings()), Ownership::buffer, 1);
  list("ZeRO-1", Zero1AdamW(AdamWSettings()), Ownership::buffer, 2);
  list("ZeRO-1 of sums", Zero1AdamW(handed), Ownership::buckets, 2);
  const GroupedOptimizer both(groups, listed_parameters());
  list("Groups", both, Ownership::matrices, 0);

  const Layout layout = listed_layout(grid, Ownership::buckets);
  const auto mixed = [&](const Optimizer& optimizer) {
    return with_master_weights(optimizer.plan(layout, grid.place(4)), layout);
  };
  all += "Master weights: " + listing_of(mixed(Muon(plain)));
  all += "Master weights: " + listing_of(mixed(Zero1AdamW(AdamWSettings())));
  const Layout alone = listed_layout(Grid().tp(2), Ownership::matrices);
  all += "Replicated: " + listing_of(replicated(Muon(bf16).plan(alone, alone.grid.place(1)), grid, grid.place(3)));
  testing::expect_golden("plans.txt", all);
}

TEST_CASE("OverlappedMuon: whichever gather the settings ask for, it plans whole buckets") {
  MuonSettings cut;
  cut.gather = Gather::cut_matrices;
  const Layout layout = listed_layout(Grid().dp(3).tp(2), Ownership::buckets);
  for (const Schedule schedule : {Schedule::in_sequence, Schedule::all_at_once, Schedule::pipelined})
    for (int rank = 0; rank < layout.grid.size(); ++rank) {
      const Place place = layout.grid.place(rank);
      CHECK(listing_of(OverlappedMuon(cut, schedule).plan(layout, place)) ==
            listing_of(OverlappedMuon(MuonSettings(), schedule).plan(layout, place)));
    }
}

TEST_CASE("moves_of: all of it, in order, for three buckets and for one") {
  using Kind = BucketMove::Kind;
  const auto text = [](Schedule schedule, int buckets) {
    std::string moves;
    for (const BucketMove& move : moves_of(schedule, buckets))
      moves += (move.kind == Kind::post ? "p" : move.kind == Kind::wait ? "w" : "o") + std::to_string(move.bucket);
    return moves;
  };
  CHECK(text(Schedule::in_sequence, 3) == "p0w0o0p1w1o1p2w2o2");
  CHECK(text(Schedule::all_at_once, 3) == "p0p1p2w0w1w2o0o1o2");
  CHECK(text(Schedule::pipelined, 3) == "p0p1w0o0p2w1o1w2o2");
  for (const Schedule schedule : {Schedule::in_sequence, Schedule::all_at_once, Schedule::pipelined})
    CHECK(text(schedule, 1) == "p0w0o0");
}

TEST_CASE("traffic_of: of every kind of call, on a rank that is neither first nor last") {
  const Grid grid = Grid().dp(4).tp(2);
  const Plan plan{grid, grid.place(4), {}};  // dp 2, tp 0
  using Kind = CollectiveKind;
  const auto of = [&](Kind kind, Index in, Index out, int peer = -1) {
    return traffic_of(Call{"dp", kind, ElementType::bfloat16, in, out, peer}, plan);
  };
  CHECK(of(Kind::barrier, 0, 0) == Traffic{0, 0, 2, 2});
  CHECK(of(Kind::send, 5, 0, 1) == Traffic{10, 0, 1, 0});
  CHECK(of(Kind::recv, 0, 7, 3) == Traffic{0, 14, 0, 1});
  CHECK(of(Kind::wait, 0, 0, 3) == Traffic{});
  CHECK(of(Kind::broadcast, 5, 5, 2) == Traffic{3 * 10, 0, 3, 0});
  CHECK(of(Kind::broadcast, 5, 5, 0) == Traffic{0, 10, 0, 1});
  // Of 11 elements DP rank 2 sums up those from ⌊22 / 4⌋ = 5 to ⌊33 / 4⌋ = 8: 3 of them; 8 go out, and 3 · 3.
  CHECK(of(Kind::all_reduce, 11, 11) == Traffic{(8 + 9) * 2, (8 + 9) * 2, 6, 6});
  CHECK(of(Kind::all_gather, 3, 17) == Traffic{3 * 3 * 2, 14 * 2, 3, 3});
  CHECK(of(Kind::reduce_scatter, 17, 3) == Traffic{14 * 2, 3 * 3 * 2, 3, 3});
  CHECK(of(Kind::all_to_all, 9, 4) == Traffic{18, 8, 3, 3});
}

TEST_CASE("traffic_of: a group that few ranks are in: its size and the rank's number in it; refused to all others") {
  const Grid grid = Grid().dp(2).pp(3);
  const Call call{"first and last stage", CollectiveKind::broadcast, ElementType::float32, 6, 6, 1};
  for (int rank = 0; rank < grid.size(); ++rank) {
    const Plan plan{grid, grid.place(rank), {}};
    CAPTURE(rank);
    if (grid.place(rank).pp == 1)
      CHECK_THROWS_WITH_AS(traffic_of(call, plan), "a plan calls the group \"first and last stage\", which no grid has",
                           std::invalid_argument);
    else
      CHECK(traffic_of(call, plan) == (grid.place(rank).pp == 2 ? Traffic{24, 0, 1, 0} : Traffic{0, 24, 0, 1}));
  }
}

TEST_CASE("held_between_steps: a line for each name and type, in their order, added up, until the first phase") {
  Plan plan{Grid(), Place(), {}};
  plan.take(5, "weights");
  plan.take(7, "momentum");
  plan.take(11, "weights", ElementType::bfloat16);
  plan.take(13, "weights");
  plan.take(17, "momentum");
  plan.work(phases::momentum, {1, 1});
  plan.take(19, "weights");
  const std::vector<Memory> held = held_between_steps(plan);
  REQUIRE(held.size() == 3);
  CHECK(held[0] == Memory{18, "weights"});
  CHECK(held[1] == Memory{24, "momentum"});
  CHECK(held[2] == Memory{11, "weights", ElementType::bfloat16});
  CHECK(peak_elements(plan) == 72);
  CHECK(peak_bytes(plan) == (72 - 11) * 4 + 11 * 2);
}
