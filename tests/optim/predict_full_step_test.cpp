// What is known of a step from the layout alone.
#include <doctest/doctest.h>

#include "tests/optim/against_serial.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

/// The matrices of the proof of concept's own test, without padding.
Layout main_layout(const Grid& grid) {
  LayoutOptions options;
  options.parameter_alignment = 1;
  return plan_layout({{"w0", {100, 100}, SplitDim::rows},
                      {"w1", {124, 324}, SplitDim::columns},
                      {"w2", {456, 124}, SplitDim::none},
                      {"w3", {676, 876}, SplitDim::columns},
                      {"w4", {128, 128}, SplitDim::rows}},
                     grid, options);
}

/// The FLOPs of Newton–Schulz on all ranks over those of one process.
double redundancy(const Grid& grid) {
  const Layout layout = main_layout(grid);
  double all = 0, serial = 0;
  for (int rank = 0; rank < grid.size(); ++rank) all += predict_newton_schulz_flops(layout, grid.place(rank), 5);
  for (const DistMeta& meta : layout.buffers[0].parameters) {
    serial += newton_schulz_flops(meta.full_shape.rows, meta.full_shape.cols, 5);
  }
  return all / serial;
}

}  // namespace

TEST_CASE("predict_newton_schulz_flops: in the main job nearly every rank computes nearly everything") {
  CHECK(redundancy(Grid()) == doctest::Approx(1));
  CHECK(redundancy(Grid().dp(4).tp(2)) == doctest::Approx(7.806).epsilon(0.0001));
  CHECK(redundancy(Grid().dp(2).tp(4)) == doctest::Approx(7.87).epsilon(0.0001));
}

TEST_CASE("predict_full_step: one rank alone sends nothing, and every call is still listed") {
  const Ledger ledger = predict_full_step(main_layout(Grid()), Grid().place(0), {});
  CHECK(ledger.total() == Traffic{});
  REQUIRE(ledger.lines().size() == 2);
  CHECK(ledger.lines()[0].kind == CollectiveKind::reduce_scatter);
  CHECK(ledger.lines()[1].kind == CollectiveKind::all_gather);
  CHECK(ledger.lines()[1].calls == 2);
}

TEST_CASE("predict_full_step: bf16 halves the bytes of the gathers of updates, and of nothing else") {
  const Grid grid = Grid().dp(2).tp(2);
  const Layout layout = main_layout(grid);
  MuonSettings settings;
  const Ledger fp32 = predict_full_step(layout, grid.place(0), settings);
  settings.precision = Precision::bf16;
  const Ledger bf16 = predict_full_step(layout, grid.place(0), settings);
  // Per rank: half a bucket for the gradients, half a bucket of updates, half a bucket of weights, in float32.
  const std::int64_t half_bucket = layout.buffers[0].size / 2 * 4;
  CHECK(fp32.total("dp").bytes_sent == 3 * half_bucket);
  CHECK(bf16.total("dp").bytes_sent == 2 * half_bucket + half_bucket / 2);
  CHECK(bf16.total("tp").bytes_sent * 2 == fp32.total("tp").bytes_sent);
}

TEST_CASE(
    "predict_peak_elements: any grid, shapes, buckets and padding: is what the rank's meter counts in full_step") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Case c = random_case(seed);
    c.settings.threads = 1;
    INFO(c.text());
    const Layout layout = c.layout();
    const std::vector<NamedMatrix> weights = c.weights();
    std::vector<std::int64_t> counted(static_cast<std::size_t>(c.grid.size()));
    std::vector<std::int64_t> left_over(counted.size());
    run_ranks(c.grid, [&](TestRank& rank) {
      MuonState state = initial_state(layout, pointers(weights), rank.place.tp);
      const Buckets gradients = pack_buckets(layout, pointers(c.gradients(0, rank.place.dp)), rank.place.tp);
      const std::int64_t before = rank.meter.live();
      rank.meter.restart_peak();
      full_step(layout, rank.place, rank.dp, rank.tp, c.settings, gradients, state);
      counted[rank.place.rank] = rank.meter.peak();
      left_over[rank.place.rank] = rank.meter.live() - before;
    });
    for (int r = 0; r < c.grid.size(); ++r) {
      REQUIRE(counted[r] == predict_peak_elements(layout, c.grid.place(r), c.settings));
      REQUIRE(left_over[r] == 0);
    }
  }
}

TEST_CASE("predict_peak_elements: smaller buckets lower the peak, and a rank that owns nothing needs least") {
  const std::vector<Parameter> parameters = {{"a", {40, 40}}, {"b", {40, 40}}, {"c", {40, 40}}};
  LayoutOptions one_bucket, small_buckets;
  small_buckets.bucket_capacity = 1;
  const Grid grid = Grid().dp(2);
  CHECK(predict_peak_elements(plan_layout(parameters, grid, small_buckets), grid.place(0), {}) <
        predict_peak_elements(plan_layout(parameters, grid, one_bucket), grid.place(0), {}));

  // A 1 × 2 matrix in a bucket of 128 padded elements lies with DP rank 0 alone.
  LayoutOptions padded;
  padded.bucket_alignment = 128;
  const Layout layout = plan_layout({{"tiny", {1, 2}}}, grid, padded);
  CHECK(predict_peak_elements(layout, grid.place(1), {}) == 128 + 128 + 64 + (64 + 128));
  CHECK(predict_peak_elements(layout, grid.place(0), {}) == 128 + 128 + 64 + (64 + 128));
}
