// Each step of the journey alone, through its public header.
#include "src/optim/steps.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/layout/slicing.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/full_step.hpp"
#include "tests/optim/random_case.hpp"
#include "tests/optim/rank_threads.hpp"

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
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
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
      const float decayed = settings.momentum * start[i];
      expected_m[i] = decayed + gradient[i];
      const float again = settings.momentum * expected_m[i];
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

TEST_CASE("dp_gather: any world size, any padding: equals the serial concatenation") {
  for (int world = 1; world <= 8; ++world) {
    for (const Precision precision : kPrecisions) {
      for (std::uint64_t seed = 0; seed < 6; ++seed) {
        Case c = random_case(seed);
        c.grid = Grid().dp(world);
        CAPTURE(c.text());
        const Layout layout = c.layout();
        const std::vector<NamedMatrix> weights = c.weights();
        const Buckets buckets = pack_buckets(layout, pointers(weights), 0);

        std::vector<Buckets> gathered(static_cast<std::size_t>(world));
        run_ranks(c.grid, [&](TestRank& rank) {
          for (std::size_t b = 0; b < buckets.size(); ++b) {
            gathered[rank.place.dp].emplace_back();
            for (std::size_t k = 0; k < buckets[b].size(); ++k) {
              const Range own = layout.dp_slice(static_cast<int>(b), static_cast<int>(k), rank.place.dp);
              const auto first = buckets[b][k].begin() + (own.begin - layout.buffers[b].buckets[k].range.begin);
              gathered[rank.place.dp][b].push_back(dp_gather(rank.dp, Flat(first, first + own.size()), precision));
            }
          }
        });

        for (int r = 0; r < world; ++r) {
          for (std::size_t b = 0; b < buckets.size(); ++b) {
            for (std::size_t k = 0; k < buckets[b].size(); ++k) {
              CHECK(same_bytes(gathered[r][b][k], rounded(buckets[b][k], precision)));
            }
          }
        }
      }
    }
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

TEST_CASE("dp_gather: moves 4-byte elements in fp32 and 2-byte elements in bf16") {
  for (const Precision precision : kPrecisions) {
    std::vector<Ledger> ledgers(3);
    run_ranks(Grid().dp(3), [&](TestRank& rank) {
      dp_gather(rank.dp, random_flat(1, 10), precision);
      ledgers[rank.place.dp] = rank.ledger;
    });
    for (const Ledger& ledger : ledgers) {
      REQUIRE(ledger.lines().size() == 1);
      CHECK(ledger.lines()[0].kind == CollectiveKind::all_gather);
      CHECK(ledger.total().bytes_sent == (precision == Precision::fp32 ? 2 * 10 * 4 : 2 * 10 * 2));
    }
  }
}

TEST_CASE("view_parameter: any layout: the packed bucket holds each parameter's TP slice at its shape") {
  Index behind_the_first_bucket = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Case c = random_case(seed);
    CAPTURE(c.text());
    const Layout layout = c.layout();
    const std::vector<NamedMatrix> weights = c.weights();
    for (int tp_rank = 0; tp_rank < c.grid.tp(); ++tp_rank) {
      const Buckets buckets = pack_buckets(layout, pointers(weights), tp_rank);
      for (const Buffer& buffer : layout.buffers) {
        for (const DistMeta& meta : buffer.parameters) {
          const Index begin = buffer.buckets[meta.bucket_idx].range.begin;
          behind_the_first_bucket += begin > 0;
          const Matrix viewed = view_parameter(buckets[meta.buffer_idx][meta.bucket_idx], begin, meta);
          const Matrix& whole = weights[meta.parameter].matrix;
          CHECK(same_bits(viewed, tp_slice(whole, c.parameters[meta.parameter].tp_split_dim, c.grid.tp(), tp_rank)));
        }
      }
    }
  }
  CHECK(behind_the_first_bucket > 0);
  // Whoever holds less than all of it is told so, at either end.
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

TEST_CASE("tp_shard: element (i, j) of a slice is the whole matrix's element in that row and column") {
  const Matrix whole = random_matrix({4, 4}, 6, 8);
  for (int r = 0; r < 2; ++r) {
    const Matrix rows = tp_shard(whole, SplitDim::rows, 2, r);
    const Matrix columns = tp_shard(whole, SplitDim::columns, 2, r);
    REQUIRE(rows.rows() == 3);
    REQUIRE(rows.cols() == 8);
    REQUIRE(columns.rows() == 6);
    REQUIRE(columns.cols() == 4);
    for (Index i = 0; i < 3; ++i) {
      for (Index j = 0; j < 8; ++j) CHECK(rows(i, j) == whole(3 * r + i, j));
    }
    for (Index i = 0; i < 6; ++i) {
      for (Index j = 0; j < 4; ++j) CHECK(columns(i, j) == whole(i, 4 * r + j));
    }
    CHECK(same_bits(tp_shard(whole, SplitDim::none, 2, r), whole));
  }
}

TEST_CASE("orthogonalize: is Newton–Schulz with the optimizer's settings") {
  const Matrix x = random_matrix({5, 5}, 7, 12);
  for (const Precision precision : kPrecisions) {
    MuonSettings settings;
    settings.newton_schulz.steps = 3;
    settings.newton_schulz.precision = precision;
    NewtonSchulzSettings expected;
    expected.steps = 3;
    expected.precision = precision;
    CHECK(same_bits(orthogonalize(x, settings, "w"), newton_schulz(x, expected)));
  }
}

TEST_CASE("orthogonalize: a NaN or an infinity is refused with the name of its parameter") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Matrix x = random_matrix({5, 5}, 3, 4);
    x(1, 2) = bad;
    try {
      orthogonalize(x, {}, "layers.3.mlp");
      FAIL("it was accepted");
    } catch (const UsageError& error) {
      CHECK(std::string(error.what()).find("layers.3.mlp") != std::string::npos);
    }
  }
}

TEST_CASE("dp_shard: any layout: the pieces of all DP ranks, one after the other, are the slice") {
  Index empty_pieces = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Case c = random_case(seed);
    CAPTURE(c.text());
    const Layout layout = c.layout();
    for (const Buffer& buffer : layout.buffers) {
      for (const DistMeta& meta : buffer.parameters) {
        const Matrix slice = random_matrix({seed, 9}, meta.shape.rows, meta.shape.cols);
        Flat joined;
        for (int r = 0; r < c.grid.dp(); ++r) {
          const Flat piece = dp_shard(slice, layout, meta, r);
          CHECK(static_cast<Index>(piece.size()) == std::max<Index>(0, layout.owned_range(meta, r).size()));
          empty_pieces += piece.empty();
          joined.insert(joined.end(), piece.begin(), piece.end());
        }
        CHECK(same_bytes(joined, slice.flat()));
      }
    }
  }
  CHECK(empty_pieces > 0);
}

TEST_CASE("apply: follows the formula in double precision to within the rounding of its few operations") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    Choices choose(seed);
    MuonSettings settings;
    settings.lr = choose.one_of<float>({0.1f, 0.02f, 1.0f});
    settings.weight_decay = choose.one_of<float>({0.0f, 0.1f, 0.5f});
    settings.rms = choose.one_of<float>({0.2f, 1.0f});
    const Shape full{choose.between(1, 3000), choose.between(1, 3000)};
    const Index count = choose.between(0, 50);
    const Flat start = random_flat(seed, count + 1);
    const Flat orthogonal = random_flat(seed + 1000, count + 1);

    Flat weights = start;
    apply(weights.data(), orthogonal.data(), count, full, settings);
    const double lr = settings.lr;
    const double step = lr * settings.rms * std::sqrt(static_cast<double>(std::max(full.rows, full.cols)));
    for (Index i = 0; i < count; ++i) {
      const double decayed = start[i] * (1.0 - lr * settings.weight_decay);
      const double expected = decayed - step * orthogonal[i];
      const double magnitude = std::abs(start[i]) + step * std::abs(orthogonal[i]);
      CHECK(std::abs(weights[i] - expected) <= 5 * magnitude * std::numeric_limits<float>::epsilon());
    }
    CHECK(weights[count] == start[count]);
  }
}

TEST_CASE("apply: the factor comes from the longer side of the whole matrix, be it rows or columns") {
  const MuonSettings settings;
  Flat tall = {1.0f}, wide = {1.0f}, small = {1.0f};
  const float one = 1.0f;
  apply(tall.data(), &one, 1, {400, 100}, settings);
  apply(wide.data(), &one, 1, {100, 400}, settings);
  apply(small.data(), &one, 1, {100, 100}, settings);
  CHECK(same_bytes(tall, wide));
  CHECK(tall[0] == doctest::Approx(0.99 - 0.1 * 0.2 * 20));
  CHECK(small[0] == doctest::Approx(0.99 - 0.1 * 0.2 * 10));
}
