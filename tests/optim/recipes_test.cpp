// Recipes, scales, coefficients and pieces: every one against plain loops on random layouts, and against PyTorch.
#include "src/optim/recipes.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/optim/serial_recipe.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/optim/rank_threads.hpp"
#include "tests/optim/recorded_step.hpp"

using namespace muonwalk;
using namespace muonwalk::test;

namespace {

Matrix read_matrix(std::istream& in, Index rows, Index cols) {
  Matrix x(rows, cols);
  for (float& value : x.flat()) {
    std::uint32_t bits = 0;
    in >> std::hex >> bits >> std::dec;
    std::memcpy(&value, &bits, sizeof value);
  }
  return x;
}

double distance(const Matrix& x, const Matrix& y) {
  double squares = 0;
  for (Index i = 0; i < x.size(); ++i) squares += std::pow(static_cast<double>(x.data()[i]) - y.data()[i], 2);
  return std::sqrt(squares);
}

// Rows dealt out to two or three pieces, a few at a time.
std::vector<Piece> random_pieces(Choices& choose, Index rows) {
  const Index count = choose.between(2, 3), at_once = choose.between(1, 5);
  std::vector<Piece> pieces;
  for (Index begin = 0; begin < rows; begin += at_once) {
    const std::size_t piece = static_cast<std::size_t>(begin / at_once % count);
    if (piece == pieces.size()) pieces.push_back({"piece", {}});
    pieces[piece].rows.push_back({begin, std::min(rows, begin + at_once)});
  }
  return pieces;
}

// A random case with a recipe, and often with another scale, other coefficients and fused matrices.
Case random_recipe_case(std::uint64_t seed) {
  Case c = random_case(seed);
  Choices choose(seed + 7000);
  c.settings.newton_schulz.threads = 1;
  if (choose.yes(30)) c.settings.gather = Gather::cut_matrices;
  c.settings = with_recipe(choose.one_of(recipes()).name, c.settings);
  if (choose.yes(50)) take_coefficients(c.settings, choose.one_of(coefficient_sets()).name);
  if (choose.yes(50))
    c.settings.arithmetic.scale =
        choose.one_of<Scale>({Scale::matched_rms, Scale::largest, Scale::tall, Scale::ratio, Scale::none});
  for (const Parameter& parameter : c.parameters)
    if (choose.yes(60)) c.settings.fused[parameter.name] = random_pieces(choose, parameter.shape.rows);
  c.options.ownership = choose.one_of<Ownership>({Ownership::buckets, Ownership::buffer, Ownership::matrices});
  return c;
}

}  // namespace

TEST_CASE("recipe_step: with the defaults, the bits of muon_step") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Case c = random_case(seed);
    c.settings.newton_schulz.threads = 1;
    CAPTURE(c.text());
    for (std::size_t p = 0; p < c.parameters.size(); ++p) {
      Matrix w = c.weights()[p].matrix, other_w = w;
      Matrix m(w.rows(), w.cols()), other_m = m;
      for (int step = 0; step < 2; ++step) {
        muon_step(w, m, c.gradients(step, 0)[p], c.settings, "w");
        recipe_step(other_w, other_m, c.gradients(step, 0)[p], c.settings, "w");
        REQUIRE(same_bits(w, other_w));
        REQUIRE(same_bits(m, other_m));
      }
    }
  }
}

TEST_CASE("recipes: any layout, scale, coefficients and pieces: the reference's bits, and the plan call by call") {
  int pieces = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const Case c = random_recipe_case(seed);
    CAPTURE(c.text());
    const auto make = [&c] { return std::make_unique<Muon>(c.settings); };
    const auto ranks = record_steps(c, make);
    const auto reference = reference_steps(c, *make());
    const Layout layout = c.layout();
    for (int r = 0; r < c.grid.size(); ++r) {
      const Place place = c.grid.place(r);
      const Plan plan = muon_plan(layout, place, c.settings);
      for (int step = 0; step < c.steps; ++step) {
        REQUIRE(first_difference(c, place, ranks[r][step].slices, reference[step]) == "");
        REQUIRE(first_difference(plan, ranks[r][step]) == "");
      }
    }
    pieces += static_cast<int>(c.settings.fused.size());
  }
  CHECK(pieces > 100);
}

// In float32 the order of sums separates our results from PyTorch's. In bf16 it can also decide a rounding, which did
// not happen in this file; the three steps then differ by the last bits of float32 products by μ, lr and scale, which
// PyTorch takes in double.
TEST_CASE("recipes: PyTorch's golden file is met by the recipe that it is of, and by no other") {
  std::ifstream in(std::string(MUONWALK_GOLDEN_DIR) + "/recipes.txt");
  std::string word, name, precision;
  Matrix first;
  std::vector<Matrix> gradients;
  int results = 0;
  while (in >> word) {
    if (word == "shape") {
      Index rows = 0, cols = 0;
      in >> rows >> cols;
      first = read_matrix(in, rows, cols);
      gradients.clear();
      for (int step = 0; step < 3; ++step) gradients.push_back(read_matrix(in, rows, cols));
      continue;
    }
    in >> name >> precision;
    const Matrix golden = read_matrix(in, first.rows(), first.cols());
    ++results;
    std::vector<Recipe> all = recipes();
    for (Recipe& recipe : all) recipe.settings.newton_schulz.products = Products::chain;
    all.insert(all.end(), recipes().begin(), recipes().end());
    if (name == "moonshot_right") {
      all = {recipes()[0], recipes()[0]};
      for (Recipe& recipe : all) recipe.name = name, recipe.settings.newton_schulz.from_the_right = true;
      all[0].settings.newton_schulz.products = Products::chain;
    }
    for (const Recipe& recipe : all) {
      CAPTURE(name + " " + precision + " by " + recipe.name);
      MuonSettings settings = recipe.settings;
      settings.newton_schulz.precision = precision == "bf16" ? Precision::bf16 : Precision::fp32;
      Matrix w = first, m(w.rows(), w.cols());
      for (const Matrix& gradient : gradients) recipe_step(w, m, gradient, settings, "w");
      const double relative = distance(w, golden) / distance(first, golden);
      const bool both_lerp =
          (recipe.name == "torch" || recipe.name == "kellerjordan") && (name == "torch" || name == "kellerjordan");
      if (recipe.name == name)
        CHECK(relative < 3e-6);
      else if (both_lerp)  // which differ in how often the scale is rounded, and in what a norm of nearly zero does
        CHECK(relative < 1e-2);
      else
        CHECK(relative > 1e-3);
    }
  }
  CHECK(results == 24);
}

TEST_CASE("with_recipe: what is asked for besides stays, and everything else is the recipe's") {
  MuonSettings knobs;
  knobs.lr = 0.5f;
  knobs.momentum = 0.25f;
  knobs.weight_decay = 0.125f;
  knobs.rms = 0.75f;
  knobs.newton_schulz.precision = Precision::bf16;
  knobs.newton_schulz.products = Products::chain;
  knobs.newton_schulz.threads = 3;
  knobs.gather = Gather::cut_matrices;
  knobs.fused["qkv"] = gate_and_up(8);
  for (const Recipe& recipe : recipes()) {
    CAPTURE(recipe.name);
    const MuonSettings settings = with_recipe(recipe.name, knobs);
    CHECK(settings.lr == 0.5f);
    CHECK(settings.momentum == 0.25f);
    CHECK(settings.weight_decay == 0.125f);
    CHECK(settings.rms == 0.75f);
    CHECK(settings.newton_schulz.precision == Precision::bf16);
    CHECK(settings.newton_schulz.products == Products::chain);
    CHECK(settings.newton_schulz.threads == 3);
    CHECK(settings.gather == Gather::cut_matrices);
    CHECK(settings.fused.count("qkv") == 1);
    for (const RecipeLine& line : recipe_lines()) CHECK(line.text(settings) == line.text(recipe.settings));
    CHECK(settings.newton_schulz.steps == recipe.settings.newton_schulz.steps);
  }
}

TEST_CASE("recipe lines: in these words for each recipe") {
  const std::vector<std::vector<std::string>> expected = {
      {"w·(1−lr·wd)", "μm+g", "yes", "‖X‖+1e-07", "before norm", "3.4445 × 5", "(cA)A", "transposed", "0.2√max(A,B)",
       "once"},
      {"w·(1−lr·wd)", "lerp(m,g,1−μ)", "yes", "‖X‖+1e-07", "before norm", "3.4445 × 5", "(cA)A", "transposed",
       "√max(1,A/B)", "twice, rounded"},
      {"w·(1−lr·wd)", "lerp(m,g,1−μ)", "yes", "max(‖X‖,1e-07)", "before norm", "3.4445 × 5", "(cA)A", "transposed",
       "√max(1,A/B)", "once"},
      {"w−(lr·wd)·w", "lerp(m,g,1−μ)", "no", "max(‖X‖,1e-15)", "after division", "quintic", "c(AA)", "transposed",
       "√max(A,B)", "3 times"},
      {"w·(1−lr·wd)", "μm+g", "no", "1.02‖X‖+1e-08", "before norm", "polar_express", "c(AA)", "X(XᵀX)", "√(A/B)",
       "once, rounded"}};
  REQUIRE(recipes().size() == expected.size());
  for (std::size_t r = 0; r < expected.size(); ++r)
    for (std::size_t line = 0; line < recipe_lines().size(); ++line) {
      CAPTURE(recipes()[r].name);
      CAPTURE(recipe_lines()[line].about);
      CHECK(recipe_lines()[line].text(recipes()[r].settings) == expected[r].at(line));
    }
}

TEST_CASE("recipe lines: each differs in some recipe, and together they lead from any recipe to any other") {
  for (const RecipeLine& line : recipe_lines()) {
    int differ = 0;
    for (const Recipe& recipe : recipes()) differ += line.text(recipe.settings) != line.text(MuonSettings());
    CHECK(differ > 0);
  }
  Matrix g = random_matrix({5, 1}, 9, 4);
  for (const Recipe& from : recipes())
    for (const Recipe& to : recipes())
      for (const Precision precision : {Precision::fp32, Precision::bf16}) {
        CAPTURE(from.name + " to " + to.name);
        MuonSettings all = from.settings, wanted = to.settings;
        for (const RecipeLine& line : recipe_lines()) line.take(all, to.settings);
        all.newton_schulz.precision = wanted.newton_schulz.precision = precision;
        Matrix w = random_matrix({5, 2}, 9, 4), m(9, 4), other_w = w, other_m = m;
        for (int step = 0; step < 2; ++step) {
          recipe_step(w, m, g, all, "w");
          recipe_step(other_w, other_m, g, wanted, "w");
        }
        REQUIRE(same_bits(w, other_w));
      }
}

TEST_CASE("scale: what the formulas say, and a root mean square of 0.2 for matrices of every shape") {
  for (const Shape shape : {Shape{64, 16}, Shape{16, 64}, Shape{32, 32}}) {
    const double a = static_cast<double>(shape.rows), b = static_cast<double>(shape.cols);
    CHECK(shape_scale(shape, Scale::matched_rms) == doctest::Approx(std::sqrt(std::max(a, b))));
    CHECK(shape_scale(shape, Scale::largest) == doctest::Approx(std::sqrt(std::max(a, b))));
    CHECK(shape_scale(shape, Scale::tall) == doctest::Approx(std::sqrt(std::max(1.0, a / b))));
    CHECK(shape_scale(shape, Scale::ratio) == doctest::Approx(std::sqrt(a / b)));
    CHECK(shape_scale(shape, Scale::none) == 1);
    MuonSettings settings;
    settings.lr = 1;
    take_coefficients(settings, "deepseekv4");  // which end nearer to 1 than others
    const Matrix o = orthogonalize(random_matrix({3, 0}, shape.rows, shape.cols), settings, "w");
    const double rms = std::sqrt(update_squares(o.data(), o.size(), shape, settings) / (a * b));
    CHECK(rms == doctest::Approx(0.2).epsilon(0.01));
  }
  for (const char* word : {"matched", "largest", "tall", "ratio", "none"})
    CHECK(std::string(scale_name(parse_scale(word))) == word);
  CHECK(usage_error([] { parse_scale("big"); }) ==
        "--scale \"big\" is not known; it takes matched, largest, tall, ratio or none");
  CHECK(usage_error([] { with_recipe("nadam", {}); }) ==
        "--recipe \"nadam\" is not known; it takes moonshot, kellerjordan, torch, emerging or dion");
  MuonSettings settings;
  CHECK(usage_error([&] { take_coefficients(settings, "best"); }) ==
        "--coefficients \"best\" are not known; it takes simple, quintic, polar_express, aol or deepseekv4");
}

TEST_CASE("coefficients: every set brings singular values from 0.05 to 0.8 near 1; simple is the default's bits") {
  for (const CoefficientSet& set : coefficient_sets()) {
    CAPTURE(set.name);
    const auto becomes = [&](double s) {
      for (const Quintic& q : set.quintics) s = q.a * s + q.b * s * s * s + q.c * s * s * s * s * s;
      return s;
    };
    for (double start = 0.05; start <= 0.8; start += 0.01) CHECK(std::fabs(becomes(start) - 1) < 0.35);
    // Those of AOL are for inputs that AOL has scaled; a lone singular value, which is 1, they turn round.
    CHECK((becomes(0.98) < 0) == (set.name == "aol"));
  }
  MuonSettings settings;
  take_coefficients(settings, "simple");
  const Matrix x = random_matrix({1, 1}, 7, 12);
  CHECK(same_bits(orthogonalize(x, settings, "w"), orthogonalize(x, MuonSettings(), "w")));
}

TEST_CASE("normalization: without an ε that matters, Newton–Schulz has one result for inputs of any size") {
  const Matrix x = random_matrix({2, 2}, 6, 10);
  const auto of_size = [&](float factor, const std::string& recipe) {
    Matrix small = x;
    for (float& value : small.flat()) value *= factor;
    return orthogonalize(small, with_recipe(recipe, {}), "w");
  };
  // A power of two, so that nothing but ε can make a difference: a norm of about 4e-9.
  CHECK(same_bits(of_size(0x1p-30f, "emerging"), of_size(1, "emerging")));
  for (const char* recipe : {"moonshot", "torch", "dion"}) {
    CAPTURE(recipe);
    CHECK(distance(of_size(0x1p-30f, recipe), of_size(1, recipe)) > 0.05);
  }
}

TEST_CASE("fused matrices: rows of q, k and v, one below the other or interleaved, with grouped queries") {
  const AttentionRows plain{4, 2, 3, false}, interleaved{4, 2, 3, true};
  CHECK(plain.rows() == 24);
  const auto three = qkv_pieces(plain, QkvSplit::three);
  REQUIRE(three.size() == 3);
  CHECK(three[0].rows == std::vector<Range>{{0, 12}});
  CHECK(three[1].rows == std::vector<Range>{{12, 18}});
  CHECK(three[2].rows == std::vector<Range>{{18, 24}});
  // Two groups of q q k v, each head of three rows.
  const auto mixed = qkv_pieces(interleaved, QkvSplit::three);
  CHECK(mixed[0].rows == std::vector<Range>{{0, 6}, {12, 18}});
  CHECK(mixed[1].rows == std::vector<Range>{{6, 9}, {18, 21}});
  CHECK(mixed[2].rows == std::vector<Range>{{9, 12}, {21, 24}});
  CHECK(qkv_pieces(plain, QkvSplit::heads).size() == 8);
  CHECK(qkv_pieces(plain, QkvSplit::heads)[5].name == "k head 1");
  CHECK(qkv_pieces(plain, QkvSplit::none).empty());
  for (const AttentionRows& attention : {plain, interleaved})
    for (const QkvSplit split : {QkvSplit::three, QkvSplit::heads})
      CHECK_NOTHROW(require_pieces(qkv_pieces(attention, split), attention.rows(), "qkv"));
  CHECK_NOTHROW(require_pieces(gate_and_up(10), 10, "gate_up"));

  CHECK(usage_error([] {
          require_pieces({{"q", {{0, 3}}}}, 4, "qkv");
        }) == "row 3 of parameter \"qkv\" is in 0 pieces; every row has to be in one");
  CHECK(usage_error([] {
          require_pieces({{"q", {{0, 3}}}, {"k", {{2, 4}}}}, 4, "qkv");
        }) == "row 2 of parameter \"qkv\" is in 2 pieces; every row has to be in one");
  CHECK(usage_error([] {
          require_pieces({{"q", {{0, 5}}}}, 4, "qkv");
        }) == "the piece \"q\" of parameter \"qkv\" has rows 0–4, but the matrix has 4 rows");
  CHECK(usage_error([] {
          qkv_pieces({6, 4, 8}, QkvSplit::three);
        }) == "4 heads of k and v can't be shared by 6 heads of q; give a number that divides it");
  CHECK(usage_error([] { parse_qkv_split("two"); }) ==
        "--split-qkv \"two\" is not known; it takes none, three or heads");
}

TEST_CASE("RmsMonitor: any layout: the root mean squares of whole weights and updates, for one all-reduce") {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    Case c = random_recipe_case(seed);
    c.settings.weight_decay = 0;      // then the update is what the weights change by
    c.grid = Grid().dp(c.grid.dp());  // the test's ranks have no group of all; cut matrices come below
    const auto before = c.weights();
    Muon muon(c.settings);
    const auto after = reference_steps(c, muon)[0];
    const Layout layout = c.layout();
    std::vector<std::vector<ParameterRms>> seen(static_cast<std::size_t>(c.grid.size()));
    std::vector<std::int64_t> calls(seen.size());
    run_ranks(c.grid, [&](TestRank& rank) {
      Muon optimizer(c.settings);
      optimizer.start(layout, rank.place, pack_buckets(layout, pointers(before), rank.place.tp));
      RmsMonitor monitor(c.parameters);
      StepContext context{layout, rank.place, rank.dp, rank.tp};
      context.monitor = &monitor;
      optimizer.step(context, pack_buckets(layout, pointers(c.gradients(0, rank.place.dp)), rank.place.tp));
      seen[static_cast<std::size_t>(rank.place.rank)] = monitor.reduce(rank.dp);
    });
    for (const auto& rank : seen)
      for (std::size_t p = 0; p < after.size(); ++p) {
        CAPTURE(c.text());
        const double size = static_cast<double>(after[p].matrix.size());
        CHECK(rank[p].weights == doctest::Approx(frobenius_norm(after[p].matrix) / std::sqrt(size)).epsilon(1e-5));
        CHECK(rank[p].update ==
              doctest::Approx(distance(after[p].matrix, before[p].matrix) / std::sqrt(size)).epsilon(1e-3));
        CHECK(rank[p].weights == seen[0][p].weights);
      }
  }

  // A matrix that TP does not cut is there on both TP ranks, and counts once; one that it cuts is counted in parts.
  const Layout layout = plan_layout({{"cut", {4, 3}, SplitDim::rows}, {"whole", {2, 2}}}, Grid().tp(2));
  run_ranks(Grid().tp(2), [&](TestRank& rank) {
    RmsMonitor monitor({{"cut", {4, 3}, SplitDim::rows}, {"whole", {2, 2}}});
    const Flat threes(6, 3.0f);
    for (const DistMeta& meta : layout.buffers[0].parameters)
      monitor.add(meta, rank.place, threes.data(), meta.shape.size(), 4.0 * static_cast<double>(meta.shape.size()));
    for (const ParameterRms& rms : monitor.reduce(rank.tp))
      if (rms.weights != 3 || rms.update != 2) throw std::logic_error("another root mean square");
    for (const ParameterRms& rms : monitor.reduce(rank.tp))
      if (rms.weights != 0 || rms.update != 0) throw std::logic_error("counted again");
  });
}
