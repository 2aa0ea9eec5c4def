// Each step of the journey alone, through its public header.
#include "src/optim/steps.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <stdexcept>
#include <utility>

#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/cases.hpp"
#include "tests/optim/random_case.hpp"
#include "tests/optim/rank_fibers.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

bool same_bytes(const Flat& left, const Flat& right) {
  if (left.size() != right.size()) return false;
  return left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

Flat random_flat(std::uint64_t seed, Index count) { return random_matrix({seed, 77}, 1, count).flat(); }

Flat rounded(Flat values, Precision precision) {
  if (precision == Precision::bf16) round_to_bf16(values.data(), static_cast<Index>(values.size()));
  return values;
}

const Precision kPrecisions[] = {Precision::fp32, Precision::bf16};

}  // namespace

TEST_CASE("momentum: with and without Nesterov, in place or not: equals the loop written by hand") {
  for (std::uint64_t seed = 0; seed < testing::cases(std::uint64_t{40}); ++seed) {
    CAPTURE(seed);
    Choices choose(seed);
    MuonSettings settings;
    settings.nesterov = choose.yes(50);
    settings.momentum = choose.one_of<float>({0.0f, 0.9f, 0.95f, 1.0f});
    const Index count = choose.between(0, 100);
    const Flat gradient = random_flat(seed, count + 1);
    const Flat start = random_flat(seed + 1000, count + 1);

    Flat expected_m = start;
    Flat expected_u(gradient.size(), 5.0f);
    for (Index i = 0; i < count; ++i) {
      const float mu = static_cast<float>(settings.momentum), decayed = mu * start[i];
      expected_m[i] = decayed + gradient[i];
      const float again = mu * expected_m[i];
      expected_u[i] = settings.nesterov ? gradient[i] + again : expected_m[i];
    }

    // Element number `count` lies behind the end and must keep its value.
    Flat m = start;
    Flat u(gradient.size(), 5.0f);
    momentum(gradient.data(), m.data(), count, settings, u.data());
    CHECK(same_bytes(m, expected_m));
    CHECK(same_bytes(u, expected_u));

    Flat m_in_place = start;
    Flat in_place = gradient;
    momentum(in_place.data(), m_in_place.data(), count, settings, in_place.data());
    CHECK(same_bytes(m_in_place, expected_m));
    CHECK(std::memcmp(in_place.data(), expected_u.data(), static_cast<std::size_t>(count) * sizeof(float)) == 0);
    CHECK(in_place[count] == gradient[count]);
  }
}

TEST_CASE("reduce_gradients, dp_gather, all_gather_weights: runs of any sizes, empty ones too: as cut by hand") {
  for (int world = 1; world <= 5; ++world)
    for (const Precision precision : kPrecisions)
      for (std::uint64_t seed = 0; seed < 8; ++seed) {
        CAPTURE(world);
        CAPTURE(seed);
        Choices choose(seed);
        std::vector<Index> counts, begins;
        Index all = 0;
        for (int r = 0; r < world; ++r) {
          begins.push_back(all);
          counts.push_back(choose.yes(30) ? 0 : choose.between(1, 9));
          all += counts.back();
        }
        std::vector<Flat> gradients;
        for (int r = 0; r < world; ++r)
          gradients.push_back(random_flat(100 * seed + static_cast<std::uint64_t>(r), all));
        const Flat whole = random_flat(seed + 50, all), old = random_flat(seed + 60, all);
        std::vector<Flat> summed(static_cast<std::size_t>(world)), gathered(summed), weights(summed);
        run_ranks(Grid().dp(world), [&](TestRank& rank) {
          const std::size_t r = static_cast<std::size_t>(rank.place.dp);
          const auto begin = whole.begin() + begins[r];
          summed[r] = reduce_gradients(rank.dp, gradients[r], counts);
          gathered[r] = dp_gather(rank.dp, Flat(begin, begin + counts[r]), counts, precision);
          weights[r] = old;
          std::copy(begin, begin + counts[r], weights[r].begin() + begins[r]);
          all_gather_weights(rank.dp, weights[r], counts);
        });
        const Flat sum = tree_sum(gradients);
        for (std::size_t r = 0; r < summed.size(); ++r) {
          CHECK(same_bytes(summed[r], Flat(sum.begin() + begins[r], sum.begin() + begins[r] + counts[r])));
          CHECK(same_bytes(gathered[r], rounded(whole, precision)));
          CHECK(same_bytes(weights[r], whole));
        }
      }
}

TEST_CASE(
    "view_parameter: the elements of a parameter; whoever holds less than all of them is told so, at either end") {
  const Layout layout = plan_layout({{"a", {2, 3}}, {"b", {2, 2}}}, Grid(), {0, 1, 1, Ownership::buckets, {}});
  const DistMeta& b = layout.meta("b");
  CHECK(view_parameter(Flat{1, 2, 3, 4}, 6, b).flat() == Flat{1, 2, 3, 4});
  for (const auto& [begin, held] : {std::pair<Index, const char*>(7, "7–10"), {5, "5–8"}})
    CHECK_THROWS_WITH_AS(view_parameter(Flat(4), begin, b),
                         ("parameter \"b\" lies at the elements 6–9 of its buffer, but this rank holds " +
                          std::string(held) + "; gather the bucket first, or let one rank own all of it")
                             .c_str(),
                         std::invalid_argument);
}

TEST_CASE("tp_gather undoes tp_shard: rows, columns and none, any world size") {
  for (int world = 1; world <= 5; ++world) {
    for (const SplitDim dim : {SplitDim::rows, SplitDim::columns, SplitDim::none}) {
      for (const Precision precision : kPrecisions) {
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
          Choices choose(seed);
          Index rows = choose.between(1, 9);
          Index cols = choose.between(1, 9);
          if (dim == SplitDim::rows) rows *= world;
          if (dim == SplitDim::columns) cols *= world;
          CAPTURE(world);
          CAPTURE(split_name(dim));
          CAPTURE(seed);
          const Matrix whole = random_matrix({seed, 3}, rows, cols);

          std::vector<Matrix> gathered(static_cast<std::size_t>(world));
          std::vector<Ledger> ledgers(static_cast<std::size_t>(world));
          run_ranks(Grid().tp(world), [&](TestRank& rank) {
            gathered[rank.place.tp] = tp_gather(rank.tp, tp_shard(whole, dim, world, rank.place.tp), dim, precision);
            ledgers[rank.place.tp] = rank.ledger;
          });

          const bool travels = world > 1 && dim != SplitDim::none;
          const Matrix expected(rows, cols, rounded(whole.flat(), travels ? precision : Precision::fp32));
          for (int r = 0; r < world; ++r) {
            CHECK(same_bits(gathered[r], expected));
            CHECK(ledgers[r].lines().empty() == !travels);
          }
        }
      }
    }
  }
}
