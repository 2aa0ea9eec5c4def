// What lesson 16 does by hand, counts, and compares with.
#include <doctest/doctest.h>

#include <cmath>

#include "lesson_16_strategies.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace lesson_16;

namespace {

double largest_difference(const Matrix& a, const Matrix& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (Index i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(double{a.data()[i]} - b.data()[i]));
  return most;
}

RankInfo info_of(const Grid& grid, int rank) {
  RankInfo info;
  info.grid = grid;
  info.place = grid.place(rank);
  info.seed = 3;
  return info;
}

}  // namespace

TEST_CASE("gate: the parts of a slice are rows, all of them, and the last ranks may have none") {
  for (int dp = 1; dp <= 8; ++dp)
    for (const int tp : {1, 2, 3, 6}) {
      const Grid grid = Grid().dp(dp).tp(tp);
      const std::vector<Index> parts = parts_of_slice(grid);
      Index next = 0;
      for (int rank = 0; rank < dp; ++rank) {
        const Range rows = rows_of_rank(grid, rank);
        CHECK(rows.begin == next);
        CHECK(rows.size() * 4 == parts[static_cast<std::size_t>(rank)]);
        if (rank > 0) CHECK(parts[static_cast<std::size_t>(rank)] <= parts[static_cast<std::size_t>(rank) - 1]);
        next = rows.end;
      }
      CHECK(next == 6 / tp);
    }
  const std::vector<Index> parts = parts_of_slice(Grid().dp(4).tp(2));
  REQUIRE(parts.size() == 4);
  for (std::size_t rank = 0; rank < 4; ++rank) CHECK(parts[rank] == (rank < 3 ? 4 : 0));
  CHECK(rows_of_rank(Grid().dp(4).tp(2), 3) == Range{3, 3});
}

TEST_CASE("gate: Gram matrices in pieces come to the orthogonal matrix, and their last bits depend on the pieces") {
  const Matrix sum = summed_gate(5, 4), whole = newton_schulz(sum);
  const Matrix once = gram_in_pieces(sum, 1)[0];
  bool other_bits = false;
  for (const int tp : {1, 2, 3, 6}) {
    const std::vector<Matrix> pieces = gram_in_pieces(sum, tp);
    REQUIRE(pieces.size() == static_cast<std::size_t>(tp));
    for (int t = 0; t < tp; ++t) {
      CHECK(largest_difference(pieces[static_cast<std::size_t>(t)], tp_slice(whole, SplitDim::rows, tp, t)) < 1e-4);
      other_bits = other_bits || !same_bits(pieces[static_cast<std::size_t>(t)], tp_slice(once, SplitDim::rows, tp, t));
    }
  }
  CHECK(other_bits);
  CHECK_FALSE(same_bits(gate_gradient(5, 0), gate_gradient(5, 1)));
  CHECK_FALSE(same_bits(gate_gradient(5, 0), gate_gradient(6, 0)));
}

TEST_CASE("counts: sums over steps, but for what is kept, and the larger moment; those of a plan") {
  Counts counts{10, 2, 3, 100, 7};
  counts.add({5, 1, 1, 90, 9});
  counts.add({0, 0, 0, 90, 1});
  CHECK(same_bits(counts.row(), Matrix(1, 5, {15, 3, 4, 90, 9})));

  Plan plan{Grid().dp(2), Place(), {}};
  for (const char* what : {"weights", "gradients", "momentum"}) plan.take(8, what);
  plan.work(phases::orthogonalize, {2, 2});
  plan.take(5, "X");
  plan.call("dp", CollectiveKind::all_gather, ElementType::float32, 4, 8);
  plan.give_back(5, "X");
  plan.work(phases::orthogonalize, {2, 2});
  plan.take(2, "X");
  CHECK(same_bits(counts_of(plan).row(), Matrix(1, 5, {16, 1, 2, 8, 5})));
}

TEST_CASE("micro-batches: apart or summed, they are the same gradients") {
  lesson_16::data = std::make_unique<MicroBatches>(kMatrices, 2, 9);
  const RankInfo rank = info_of(Grid().dp(2).tp(1), 1);
  const std::vector<NamedMatrix> held = lesson_16::data->first_weights();
  const auto summed = own_gradients(1, rank, held, false), apart = own_gradients(1, rank, held, true);
  REQUIRE(summed.size() == 1);
  REQUIRE(apart.size() == 4);
  for (std::size_t p = 0; p < held.size(); ++p) {
    Matrix sum = apart[0][p];
    for (Index i = 0; i < sum.size(); ++i)
      sum.data()[i] = (apart[0][p].data()[i] + apart[1][p].data()[i]) + (apart[2][p].data()[i] + apart[3][p].data()[i]);
    CHECK(same_bits(summed[0][p], sum));
  }
}

TEST_CASE("references: (a) to (f) are Muon's, (g) has other bits, and (h) is Muon in its full step alone") {
  const Grid grid = Grid().dp(2).tp(2);
  RankInfo rank = info_of(grid, 2);
  rank.products = Products::chain;
  lesson_16::data = std::make_unique<MicroBatches>(kMatrices, kSteps, rank.seed);
  references.clear();
  make_references(rank);
  ReferenceRun muon(*lesson_16::data, std::make_unique<Muon>(settings_of(rank)));
  const std::vector<NamedMatrix> all = expected_weights(rank);
  const std::size_t each = kMatrices.size();
  REQUIRE(all.size() == 8 * 2 * each);
  for (std::size_t s = 0; s < 8; ++s)
    for (std::size_t step = 0; step < 2; ++step) {
      const std::vector<NamedMatrix> right = muon.slices_after(static_cast<int>(step) + 1, grid, rank.place);
      std::size_t equal = 0;
      for (std::size_t p = 0; p < each; ++p) equal += same_bits(all[(2 * s + step) * each + p].matrix, right[p].matrix);
      CAPTURE(s);
      CAPTURE(step);
      // Six matrices of 14 are not cut by TP, and the same in (g) and (h).
      CHECK(equal == (s < 6 || (s == 7 && step == 0) ? each : 6));
    }
}

TEST_CASE("plans of two steps: those of a strategy with a period are two different ones") {
  const RankInfo rank = info_of(Grid().dp(2).tp(2), 3);
  for (const Strategy& strategy : strategies()) {
    const std::vector<Plan> plans = plans_of(strategy, rank);
    CAPTURE(strategy.name);
    REQUIRE(plans.size() == 2);
    CHECK((plans[0].operations == plans[1].operations) == (strategy.period == 1));
  }
}
