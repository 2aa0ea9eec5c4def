// Clipping by the global norm: on any grid, with pipeline stages and a tied embedding on two of them, the norm and the
// clipped gradients have the bits of one process, and ranks do what the plan lists.
#include "src/train/clipping.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "src/numerics/tree_sum.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/master_weights.hpp"
#include "src/train/models.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

constexpr const char* kTied = "w0";  // lies on the first stage, and once more on the last one

bool same_bits_of(double a, double b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }

bool same_bits_of(const Buckets& a, const Buckets& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    for (std::size_t k = 0; k < a[i].size(); ++k)
      if (a[i][k].size() != b[i][k].size() ||
          (!a[i][k].empty() && std::memcmp(a[i][k].data(), b[i][k].data(), a[i][k].size() * sizeof(float)) != 0))
        return false;
  }
  return true;
}

// A stage of the model: which parameters it has, and which of them it does not count.
struct StageOfModel {
  std::vector<std::size_t> numbers;  // among all
  std::set<std::string> not_mine;
  Layout layout;

  // Its part of what there is for all parameters.
  template <class T>
  std::vector<T> of(const std::vector<T>& all) const {
    std::vector<T> own;
    for (const std::size_t p : numbers) own.push_back(all[p]);
    return own;
  }
};

std::vector<StageOfModel> stages_of(const Case& c) {
  std::vector<StageOfModel> stages(static_cast<std::size_t>(c.grid.pp()));
  for (int s = 0; s < c.grid.pp(); ++s) {
    StageOfModel& stage = stages[static_cast<std::size_t>(s)];
    const Range range = stage_parameters(static_cast<int>(c.parameters.size()), c.grid.pp(), s);
    for (Index p = range.begin; p < range.end; ++p) stage.numbers.push_back(static_cast<std::size_t>(p));
    if (s > 0 && s == c.grid.pp() - 1) {
      stage.numbers.push_back(0);
      stage.not_mine = {kTied};
    }
    stage.layout = plan_layout(stage.of(c.parameters), c.grid, c.options);
  }
  return stages;
}

// A random case with as many stages, each with a parameter of its own.
Case staged_case(std::uint64_t seed, int pp) {
  Case c = random_case(seed);
  c.grid.pp(pp);
  while (static_cast<int>(c.parameters.size()) < pp) {
    Parameter more = c.parameters.back();
    more.name += "x";
    c.parameters.push_back(more);
  }
  c.options.ownership = static_cast<Ownership>(seed % 3);
  return c;
}

std::vector<Matrix> summed_gradients(const Case& c) {
  std::vector<std::vector<Matrix>> leaves;
  for (int leaf = 0; leaf < c.grid.dp(); ++leaf) leaves.push_back(c.gradients(0, leaf));
  std::vector<Matrix> sums;
  for (std::size_t p = 0; p < c.parameters.size(); ++p) sums.push_back(summed_gradient(leaves, p));
  return sums;
}

// What a rank has after it has clipped, and what its observers were told.
struct ClippedRank {
  double norm = 0;
  double twice_counted = 0;  // the norm, were every TP rank to count what TP does not cut
  double tied_twice = 0;     // were the last stage to count its copy of the tied parameter
  Buckets shards;
  RecordedStep recorded;
};

class ClippingObserver : public CallObserver {
 public:
  explicit ClippingObserver(std::vector<Seen>& seen) : seen_(seen) {}
  void begins(const Call& call) override { seen_.push_back({"", -1, call, 0, 0}); }

 private:
  std::vector<Seen>& seen_;
};

std::vector<ClippedRank> clip_on_ranks(const Case& c, const std::vector<StageOfModel>& stages, float max_norm) {
  std::vector<ClippedRank> ranks(static_cast<std::size_t>(c.grid.size()));
  run_ranks(c.grid, [&](TestRank& rank) {
    const StageOfModel& stage = stages[static_cast<std::size_t>(rank.place.pp)];
    ClippedRank& mine = ranks[static_cast<std::size_t>(rank.place.rank)];
    std::vector<Seen> seen;
    ClippingObserver observer(seen);
    rank.dp.observe(observer);
    rank.tp.observe(observer);
    rank.world.observe(observer);
    const auto whole = stage.of(c.gradients(0, rank.place.dp));
    Buckets gradients = pack_buckets(stage.layout, pointers(whole), rank.place.tp);
    const StepContext context{stage.layout, rank.place, rank.dp, rank.tp, [&](Phase phase, const DistMeta* meta) {
                                seen.push_back({std::string(phase),
                                                meta == nullptr ? -1 : meta->parameter,
                                                {},
                                                rank.meter.live(),
                                                rank.meter.live_bytes()});
                              }};
    const std::int64_t others = rank.meter.live() - element_count(gradients);  // whole matrices, the test's own
    RecordedStep& recorded = mine.recorded;
    recorded.held_before = element_count(gradients);
    recorded.bytes_before = 4 * recorded.held_before;
    rank.meter.restart_peak();
    rank.meter.restart_peak_bytes();
    Buckets shards = reduced_shards(context, gradients);
    mine.norm = clip_shards(context, rank.world, max_norm, stage.not_mine, shards);
    recorded.peak = rank.meter.peak() - others;
    recorded.peak_bytes = rank.meter.peak_bytes() - 4 * others;
    recorded.held_after = rank.meter.live() - others - element_count(shards);
    for (Seen& each : seen) each.held -= others, each.held_bytes -= 4 * others;
    recorded.seen = seen;
    recorded.counted = rank.ledger;

    // What can go wrong, on the same gradients.
    MemoryMeter uncounted;
    const MeterScope scope(uncounted);
    const Buckets sums = reduced_shards({stage.layout, rank.place, rank.dp, rank.tp}, gradients);
    Place everybody = rank.place;
    everybody.tp = 0;
    mine.twice_counted = norm_of_all(rank.world, squares_of_shards(stage.layout, everybody, sums, stage.not_mine));
    mine.tied_twice = norm_of_all(rank.world, squares_of_shards(stage.layout, rank.place, sums));
    mine.shards = shards;
  });
  return ranks;
}

Plan plan_of_clipping(const Case& c, const StageOfModel& stage, const Place& place) {
  Plan plan{c.grid, place, {}};
  Index all = 0;
  for (const Buffer& buffer : stage.layout.buffers) all += buffer.size;
  plan.take(all, "gradients");
  plan_reduced_shards(plan, stage.layout);
  plan_clip_shards(plan, stage.layout, stage.not_mine);
  plan.give_back(stage.layout.shard_elements(place.dp), "summed gradients");
  return plan;
}

}  // namespace

TEST_CASE("clip_shards: any grid, layout and ownership: the norm and the shards of one process, and the plan") {
  int replicated = 0, tied = 0, clipped = 0, left = 0;
  for (std::uint64_t seed = 1; seed <= 90; ++seed) {
    const Case c = staged_case(seed, 1 + static_cast<int>(seed % 4));
    INFO(c.text() << " pp " << c.grid.pp());
    const std::vector<StageOfModel> stages = stages_of(c);
    std::vector<Matrix> serial = summed_gradients(c);
    const double before = norm_of_gradients(serial);
    const float max_norm = seed % 5 == 0 ? 1e6f : static_cast<float>(before) * 0.3f;
    REQUIRE(same_bits_of(clip_gradients(serial, max_norm), before));
    (clip_factor(before, max_norm) < 1 ? clipped : left) += 1;

    bool uncut = false;
    for (const Parameter& each : c.parameters) uncut = uncut || each.tp_split_dim == SplitDim::none;
    const std::vector<ClippedRank> ranks = clip_on_ranks(c, stages, max_norm);
    for (const ClippedRank& rank : ranks) {
      const Place place = c.grid.place(static_cast<int>(&rank - ranks.data()));
      const StageOfModel& stage = stages[static_cast<std::size_t>(place.pp)];
      REQUIRE(same_bits_of(rank.norm, before));
      const auto own = stage.of(serial);
      const Buckets whole = pack_buckets(stage.layout, pointers(own), place.tp);
      REQUIRE(same_bits_of(rank.shards, shards_of(stage.layout, whole, place.dp)));
      REQUIRE(first_difference(plan_of_clipping(c, stage, place), rank.recorded) == "");
      // Somebody who counts anything twice is found out, unless there is nothing to be counted twice.
      REQUIRE(same_bits_of(rank.twice_counted, before) == !(uncut && c.grid.tp() > 1));
      REQUIRE(same_bits_of(rank.tied_twice, before) == (c.grid.pp() == 1));
    }
    replicated += uncut && c.grid.tp() > 1;
    tied += c.grid.pp() > 1;
  }
  for (const int count : {replicated, tied, clipped, left}) REQUIRE(count > 5);
}

TEST_CASE("clip_factor: what PyTorch multiplies by, rounded once; nonsense is refused") {
  CHECK(clip_factor(0, 1) == 1);
  CHECK(clip_factor(0.5, 1) == 1);
  CHECK(clip_factor(4, 1) == static_cast<float>(1 / 4.000001));
  CHECK(clip_factor(1, 1) == static_cast<float>(1 / 1.000001));  // at the limit a little is taken away, as there
  CHECK(clip_factor(1e30, 1) == 1e-30f);
  CHECK(clip_factor(4, std::numeric_limits<float>::infinity()) == 1);
  CHECK(usage_error([] { clip_factor(1, 0); }) ==
        "--clip 0 makes no sense for the norm of gradients; it takes a number above 0, for example 1");
  for (const auto& [wrong, words] : {std::pair(-1.0f, "-1"), {NAN, "nan"}})
    CHECK(usage_error([wrong = wrong] { clip_factor(1, wrong); }) ==
          "--clip " + std::string(words) +
              " makes no sense for the norm of gradients; it takes a number above 0, for example 1");
  for (const double norm : {double(NAN), double(INFINITY)})
    CHECK(usage_error([norm] { clip_factor(norm, 1); }) ==
          "the gradients hold a NaN or an infinity, so they have no norm that they could be clipped to; try smaller "
          "learning rates");
  std::vector<Matrix> gradients = {Matrix(1, 2, Flat{3, 0}), Matrix(2, 1, Flat{0, -4})};
  CHECK(clip_gradients(gradients, 1) == 5);
  CHECK(gradients[0](0, 0) == 3 * clip_factor(5, 1));
  CHECK(gradients[1](1, 0) == -4 * clip_factor(5, 1));
}

TEST_CASE("clip_shards: a NaN on one rank is found by all of them; what does not fit is refused in a sentence") {
  const Grid grid = Grid().dp(2).pp(2);
  const Layout layout = plan_layout({{"w", {4, 4}}}, grid);
  std::vector<std::string> sentences(4), strangers(4), elsewhere(4), sizes(4), unsummed(4);
  run_ranks(grid, [&](TestRank& rank) {
    const StepContext context{layout, rank.place, rank.dp, rank.tp};
    Buckets shards = zero_shards(layout, rank.place.dp);
    if (rank.place.rank == 2) shards[0][0][3] = std::numeric_limits<float>::infinity();
    const auto sentence_of = [](const std::function<void()>& call) -> std::string {
      try {
        call();
      } catch (const std::exception& error) {
        return error.what();
      }
      return "";
    };
    const auto number = static_cast<std::size_t>(rank.place.rank);
    sentences[number] = sentence_of([&] { clip_shards(context, rank.world, 1, {}, shards); });
    strangers[number] = sentence_of([&] { clip_shards(context, rank.dp, 1, {}, shards); });
    Buckets whole = zero_buckets(layout);
    sizes[number] = sentence_of([&] { clip_shards(context, rank.world, 1, {}, whole); });
    unsummed[number] = sentence_of([&] { reduced_shards(context, shards); });
    const Place next = grid.place((rank.place.rank + 1) % 4);
    const StepContext of_next{layout, next, rank.dp, rank.tp};
    elsewhere[number] = sentence_of([&] { clip_shards(of_next, rank.world, 1, {}, shards); });
  });
  for (const std::string& each : sentences) CHECK(each.find("the gradients hold a NaN or an infinity") == 0);
  CHECK(strangers[1] ==
        "clip_shards was given rank 1 of a group of 2, but it is rank 1 of 4; hand it the group of all ranks.");
  CHECK(strangers[0] ==
        "clip_shards was given rank 0 of a group of 2, but it is rank 0 of 4; hand it the group of all ranks.");
  for (std::size_t rank = 0; rank < 4; ++rank)
    CHECK(elsewhere[rank] == "clip_shards was given rank " + std::to_string(rank) +
                                 " of a group of 4, but it is rank " + std::to_string((rank + 1) % 4) +
                                 " of 4; hand it the group of all ranks.");
  for (const std::string& each : unsummed) CHECK(each.find("reduced_shards was given gradients of ") == 0);
  for (const std::string& each : sizes) CHECK(each.find("clip_shards was given summed gradients of ") == 0);
  CHECK_THROWS_AS(squares_of_shards(layout, grid.place(0), zero_shards(layout, 0), {"v"}), std::out_of_range);
}
