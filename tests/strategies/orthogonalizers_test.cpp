// Strategies whose TP groups do not do what Muon's do: distributed Gram and block-wise. Over random layouts, models
// and recipes their bits are their references', and they do what their plans list, call by call. And what the two are
// about: what they send, what their bits depend on, and how far they are from Muon.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "src/optim/full_step.hpp"
#include "src/optim/recipes.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "tests/cases.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/rank_fibers.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

// An optimizer as it is after this many steps.
using MakeAfter = std::function<std::unique_ptr<Optimizer>(int steps)>;

// Where a run of the case differs from the reference, or from the plan of a step; else empty.
std::string first_difference(const Case& c, const MakeAfter& make) {
  const Layout layout = c.layout();
  const auto ranks = record_steps(c, [&make] { return make(0); });
  const auto reference = reference_steps(c, *make(0));
  for (int r = 0; r < c.grid.size(); ++r)
    for (int step = 0; step < c.steps; ++step) {
      const Place place = c.grid.place(r);
      const RecordedStep& recorded = ranks[r][step];
      const std::string where = "rank " + std::to_string(r) + ", step " + std::to_string(step) + ": ";
      const std::string weights = first_difference(c, place, recorded.slices, reference[step]);
      if (!weights.empty()) return where + "weights " + weights;
      const std::string plan = first_difference(make(step)->plan(layout, place), recorded);
      if (!plan.empty()) return where + plan;
    }
  return "";
}

// The two optimizers of this room for a layout, any layout.
MakeAfter gram(const Case& c) {
  return [c](int steps) { return distributed_gram().optimizer(c.layout(), c.settings, steps); };
}
MakeAfter blocks(const Case& c) {
  return [c](int steps) { return block_wise().optimizer(c.layout(), c.settings, steps); };
}

// A random case with another policy of ownership, and another recipe, for each seed.
Case varied_case(std::uint64_t seed) {
  Case c = random_case(seed);
  c.options.ownership = std::vector<Ownership>{Ownership::buckets, Ownership::buffer, Ownership::matrices}[seed % 3];
  const std::vector<Recipe>& all = recipes();
  const int steps = c.settings.newton_schulz.steps;
  const Recipe& recipe = all[seed / 2 % all.size()];  // one with a second moment takes the step of Muon alone
  if (seed % 2 == 1 && !recipe.settings.second_moment.used) c.settings = with_recipe(recipe.name, c.settings);
  c.settings.newton_schulz.steps = steps;
  if (seed % 4 == 2) c.settings.gather = Gather::cut_matrices;
  return c;
}

// One matrix on one TP group.
Case one_matrix(Shape shape, SplitDim dim, int tp, Precision precision = Precision::fp32) {
  Case c;
  c.seed = 7;
  c.parameters = {{"w", shape, dim}};
  c.grid = Grid().tp(tp);
  c.settings.newton_schulz.precision = precision;
  c.steps = 1;
  return c;
}

// The weights of the case's reference after each of its steps, of its first matrix.
std::vector<Matrix> first_matrix(const Case& c, const Optimizer& optimizer) {
  std::vector<Matrix> all;
  for (const auto& step : reference_steps(c, optimizer)) all.push_back(step[0].matrix);
  return all;
}

double norm_of_difference(const Matrix& a, const Matrix& b) {
  double squares = 0;
  for (Index i = 0; i < a.size(); ++i) squares += std::pow(double(a.data()[i]) - double(b.data()[i]), 2);
  return std::sqrt(squares);
}

std::int64_t sent_over_tp(const Strategy& strategy, const Case& c, int rank, int steps = 0) {
  const Layout layout = strategy.lay_out(c.parameters, c.grid, 0);
  const Plan plan = strategy.optimizer(layout, c.settings, steps)->plan(layout, c.grid.place(rank));
  return ledger_of(plan).total("tp").bytes_sent;
}

}  // namespace

TEST_CASE(
    "orthogonalizers: any grid, layout, precision, engine and recipe: the reference's bits, and the plan call by "
    "call") {
  std::map<std::string, int> seen;
  for (std::uint64_t seed = 1; seed <= 320; ++seed) {
    Case c = varied_case(seed);
    c.settings.newton_schulz.gram = false;  // distributed Gram refuses it
    INFO(c.text());
    REQUIRE(first_difference(c, gram(c)) == "");
    REQUIRE(first_difference(c, blocks(c)) == "");

    const Layout layout = c.layout();
    const std::string numbers = std::string(products_name(c.settings.newton_schulz.products)) + " " +
                                precision_name(c.settings.newton_schulz.precision);
    for (int dp = 0; dp < c.grid.dp(); ++dp) seen["owns nothing"] += layout.shard_elements(dp) == 0;
    seen["fewer matrices than ranks"] += static_cast<int>(c.parameters.size()) < c.grid.size();
    for (const Buffer& buffer : layout.buffers)
      for (const DistMeta& meta : buffer.parameters) {
        if (!cut_by_tp(meta)) continue;
        const bool by_rows = meta.tp_split_dim == SplitDim::rows;
        const Index cut = by_rows ? meta.full_shape.rows : meta.full_shape.cols;
        const Index uncut = by_rows ? meta.full_shape.cols : meta.full_shape.rows;
        ++seen["tp " + std::to_string(c.grid.tp()) + ", " + numbers + (cut < uncut ? ", short side" : ", long side")];
        seen["larger than a bucket"] += c.options.bucket_capacity > 0 && meta.shape.size() > c.options.bucket_capacity;
        seen["several owners"] += layout.owners(meta).size() > 1;
      }
  }
  for (const auto& [what, times] : seen) MESSAGE(what, ": ", times);
  CHECK(seen.size() == 4 + 3 * 6 * 2);
  for (const auto& [what, times] : seen) CHECK_MESSAGE(times > 0, what);
}

TEST_CASE("orthogonalizers: where TP cuts nothing, the bits and the plan are Muon's") {
  for (std::uint64_t seed = 1; seed <= testing::cases(std::uint64_t{30}); ++seed) {
    Case c = varied_case(seed);
    if (seed % 2 == 0)
      c.grid = Grid().dp(c.grid.dp());
    else
      for (Parameter& parameter : c.parameters) parameter.tp_split_dim = SplitDim::none;
    c.settings.gather_unrounded = true;  // as block-wise has it
    INFO(c.text());
    const Muon muon(c.settings);
    const auto expected = reference_steps(c, muon);
    for (const MakeAfter& make : {gram(c), blocks(c)}) {
      REQUIRE(first_difference(c, make) == "");
      const auto weights = reference_steps(c, *make(0));
      for (int step = 0; step < c.steps; ++step) {
        for (std::size_t p = 0; p < c.parameters.size(); ++p)
          REQUIRE(same_bits(weights[step][p].matrix, expected[step][p].matrix));
        for (int r = 0; r < c.grid.size(); ++r) {
          const Place place = c.grid.place(r);
          const bool same = make(step)->plan(c.layout(), place).operations == muon.plan(c.layout(), place).operations;
          REQUIRE(same);
        }
      }
    }
  }
}

TEST_CASE("distributed Gram: its bits depend on T, and are near Muon's for any T") {
  std::map<Precision, double> farthest;  // from Muon, of the update
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const Products products : {Products::eigen, Products::chain})
      for (const SplitDim dim : {SplitDim::rows, SplitDim::columns}) {
        CAPTURE(std::string(precision_name(precision)));
        CAPTURE(std::string(products_name(products)));
        CAPTURE(std::string(split_name(dim)));
        std::vector<Matrix> weights;
        for (const int tp : {1, 2, 4}) {
          Case c = one_matrix({24, 40}, dim, tp, precision);
          c.settings.newton_schulz.products = products;
          REQUIRE(first_difference(c, gram(c)) == "");
          weights.push_back(first_matrix(c, *gram(c)(0))[0]);
        }
        const Case c = one_matrix({24, 40}, dim, 1, precision);
        const double update = norm_of_difference(weights[0], c.weights()[0].matrix);
        CHECK_FALSE(same_bits(weights[0], weights[1]));
        CHECK_FALSE(same_bits(weights[1], weights[2]));
        CHECK_FALSE(same_bits(weights[0], weights[2]));
        for (const Matrix& other : weights) {
          const double apart = norm_of_difference(weights[0], other) / update;
          farthest[precision] = std::max(farthest[precision], apart);
          CHECK(apart < (precision == Precision::fp32 ? 1e-4 : 5e-2));
        }
      }
  for (const auto& [precision, apart] : farthest)
    MESSAGE(std::string(precision_name(precision)), ": at most ", apart, " of Muon's update apart from it");
}

TEST_CASE("distributed Gram: from the right is for what is turned, which is what TP cuts into rows, tall or not") {
  for (const Shape shape : {Shape{24, 40}, Shape{40, 24}})
    for (const SplitDim dim : {SplitDim::rows, SplitDim::columns}) {
      Case c = one_matrix(shape, dim, 2, Precision::bf16);
      const Matrix plain = first_matrix(c, *gram(c)(0))[0];
      c.settings.newton_schulz.from_the_right = true;
      REQUIRE(first_difference(c, gram(c)) == "");
      CHECK(same_bits(plain, first_matrix(c, *gram(c)(0))[0]) == (dim == SplitDim::columns));
    }
}

TEST_CASE("distributed Gram: a number that travels is the sum over all TP ranks, not over some of them") {
  // Were a rank's part of the norm or of A left out, a matrix of which one slice alone is not zero would show it.
  for (int alone = 0; alone < 3; ++alone) {
    const Case c = one_matrix({6, 12}, SplitDim::columns, 3);
    const auto serial = gram(c)(0)->reference({{"w", Matrix(6, 12)}});
    const auto muon = Muon(c.settings).reference({{"w", Matrix(6, 12)}});
    Matrix gradient = c.gradients(0, 0)[0];
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 12; ++j)
        if (j / 4 != alone) gradient(i, j) = 0;
    serial->step({{gradient}});
    muon->step({{gradient}});
    const Matrix &mine = serial->parameters()[0].matrix, &whole = muon->parameters()[0].matrix;
    CHECK(norm_of_difference(mine, whole) < 1e-5 * norm_of_difference(whole, Matrix(6, 12)));
  }
}

TEST_CASE(
    "distributed Gram: bytes are those of the formula, fewer than with a gather where 5 s < l, never for squares") {
  const auto gathered = [](const Case& c) { return sent_over_tp(tp_duplicated(), c, 0); };
  const auto summed = [](const Case& c) { return sent_over_tp(distributed_gram(), c, 0); };
  for (const int tp : {2, 4, 8})
    for (const bool by_rows : {false, true})
      for (const Index s : {8, 16, 64})
        for (const Index l : {Index{8}, s, 5 * s - tp, 5 * s, 5 * s + tp, 16 * s}) {
          if (l % tp != 0) continue;
          const Case c = one_matrix(by_rows ? Shape{l, s} : Shape{s, l}, by_rows ? SplitDim::rows : SplitDim::columns,
                                    tp, Precision::bf16);
          INFO(c.text());
          // An all-reduce of s² elements of two bytes in each of five steps, and one number of eight bytes.
          CHECK(summed(c) == 5 * 2 * (tp - 1) * s * s / tp * 2 + (tp - 1) * 8);
          // A gather in float32.
          CHECK(gathered(c) == (tp - 1) * s * l / tp * 4);
          CHECK((summed(c) < gathered(c)) == (l > 5 * s));
          if (l == s) CHECK(summed(c) > gathered(c));
          // In fp32, A takes twice the bytes.
          Case wide = c;
          wide.settings.newton_schulz.precision = Precision::fp32;
          CHECK((summed(wide) < gathered(wide)) == (l > 10 * s));
        }
}

TEST_CASE("distributed Gram: FLOPs are k (4 s² l / T + 2 s³), also where TP cuts the short side, which is more work") {
  const auto work = [](const Case& c, const Strategy& strategy) {
    const Layout layout = strategy.lay_out(c.parameters, c.grid, 0);
    return flops(strategy.optimizer(layout, c.settings, 0)->plan(layout, c.grid.place(0)), phases::orthogonalize);
  };
  const Case by_long = one_matrix({16, 64}, SplitDim::columns, 4), by_short = one_matrix({16, 64}, SplitDim::rows, 4);
  CHECK(work(by_long, distributed_gram()) == 5 * (4.0 * 16 * 16 * 64 / 4 + 2.0 * 16 * 16 * 16));
  CHECK(work(by_short, distributed_gram()) == 5 * (4.0 * 64 * 64 * 16 / 4 + 2.0 * 64 * 64 * 64));
  CHECK(work(by_long, distributed_gram()) < work(by_long, tp_duplicated()));
  CHECK(work(by_short, distributed_gram()) > work(by_short, tp_duplicated()));
  CHECK(work(by_long, tp_duplicated()) == work(by_short, tp_duplicated()));
}

TEST_CASE(
    "block-wise: the full step is Muon's in every bit, the block step is far from it, and sends nothing over tp") {
  for (const SplitDim dim : {SplitDim::rows, SplitDim::columns}) {
    Case c = one_matrix({24, 40}, dim, 4);
    c.steps = 4;
    const Matrix before = c.weights()[0].matrix;
    const auto muon = first_matrix(c, Muon(c.settings)), mine = first_matrix(c, *blocks(c)(0));
    CHECK(same_bits(mine[0], muon[0]));
    // Both begin the second step with the same weights and the same momentum.
    const double apart = norm_of_difference(mine[1], muon[1]) / norm_of_difference(muon[0], muon[1]);
    MESSAGE("TP cuts ", std::string(split_name(dim)), ": the block step differs from Muon's by ", apart,
            " of its update");
    CHECK(apart > 0.3);
    // A counter that begins with the second step.
    CHECK_FALSE(same_bits(first_matrix(c, *blocks(c)(1))[0], muon[0]));
    CHECK(same_bits(first_matrix(c, *blocks(c)(2))[0], muon[0]));

    for (int step = 0; step < 4; ++step)
      CHECK(sent_over_tp(block_wise(), c, 1, step) == (step % 2 == 0 ? sent_over_tp(tp_duplicated(), c, 1) : 0));
  }
}

TEST_CASE("block-wise: a block is a matrix of its own, with the scale of its own shape") {
  const Case c = one_matrix({24, 40}, SplitDim::columns, 4);
  const Matrix whole = first_matrix(c, *blocks(c)(1))[0];
  for (int t = 0; t < 4; ++t) {
    const auto part = [t](const Matrix& x) {
      Matrix columns(24, 10);
      for (Index i = 0; i < 24; ++i)
        for (Index j = 0; j < 10; ++j) columns(i, j) = x(i, 10 * t + j);
      return columns;
    };
    const auto muon = Muon(c.settings).reference({{"block", part(c.weights()[0].matrix)}});
    muon->step({{part(c.gradients(0, 0)[0])}});
    CHECK(same_bits(part(whole), muon->parameters()[0].matrix));
  }
}

TEST_CASE("orthogonalizers: what can't work is refused in a sentence") {
  Case c = one_matrix({6, 8}, SplitDim::rows, 2);
  c.settings.fused["w"] = gate_and_up(6);
  CHECK(usage_error([&] { gram(c)(0); }) ==
        "distributed Gram can't orthogonalize parameter \"w\" in 2 pieces, because TP may cut across them; take it as "
        "one matrix, or another strategy");
  CHECK(usage_error([&] { blocks(c)(0); }) ==
        "block-wise Muon can't orthogonalize parameter \"w\" in 2 pieces, because TP may cut across them; take it as "
        "one matrix, or another strategy");
  c.settings.fused.clear();
  c.settings.newton_schulz.gram = true;
  CHECK(usage_error([&] { gram(c)(0); }) ==
        "distributed Gram sums X Xᵀ in every step, and --recipe gram in two; take another recipe");
  c.settings.newton_schulz.gram = false;
  CHECK_THROWS_WITH_AS(
      gram(c)(0)->reference({{"v", Matrix(6, 8)}})->step({{Matrix(6, 8)}}),
      "how TP cuts parameter \"v\" is not known; it is not in the layout that the optimizer was made for",
      std::invalid_argument);

  // A number that is not finite: the rank whose slice it is in says where.
  for (const MakeAfter& make : {gram(c), blocks(c)}) {
    const std::string sentence = usage_error([&] {
      const Layout layout = c.layout();
      run_ranks(c.grid, [&](TestRank& rank) {
        const auto optimizer = make(1);
        optimizer->start(layout, rank.place, pack_buckets(layout, pointers(c.weights()), rank.place.tp));
        Matrix gradient(6, 8);
        gradient(4, 5) = INFINITY;
        const Buckets gradients = pack_buckets(layout, {&gradient}, rank.place.tp);
        optimizer->step({layout, rank.place, rank.dp, rank.tp}, gradients);
      });
    });
    CHECK(sentence ==
          "parameter \"w, TP slice 1\" holds an infinity at row 1, column 5; Newton–Schulz needs finite numbers, so "
          "check "
          "the gradients that were passed in");
  }
}
