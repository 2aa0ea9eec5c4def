// The tables of lesson 12, as functions.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "lesson_12_matched_rms.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/steps.hpp"
#include "src/text/text.hpp"
#include "tests/near.hpp"
#include "tests/ranks/run_program.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace lesson_12;
using muonwalk::testing::lines_of;

namespace {

void expect_fits(const std::string& text) {
  CAPTURE(text);
  for (const std::string& line : lines_of(text)) {
    CHECK(text_width(line) <= 100);
    CHECK(line.find_last_not_of(' ') + 1 == line.size());
  }
}

std::size_t times(const std::string& word, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("distances: an RMS, a norm of a difference, and a relative distance in words") {
  const Matrix x(1, 4, Flat{3, -3, 3, -3}), y(1, 4, Flat{3, -3, 0, 1});
  CHECK(rms_of(x) == 3);
  CHECK(rms_of(Matrix()) == 0);
  CHECK(distance(x, y) == 5);
  CHECK(distance(x, x) == 0);
  CHECK_THROWS_WITH_AS(distance(x, Matrix(2, 2)),
                       "a matrix of 1 × 4 has no distance from one of 2 × 2; they need one shape",
                       std::invalid_argument);
  CHECK(relative_text(0) == "same bits");
  CHECK(relative_text(9e-6) == "last bits");
  CHECK(relative_text(1e-5) == "0.001 %");
  CHECK(relative_text(0.0031) == "0.31 %");
  CHECK(relative_text(0.0312) == "3.1 %");
  CHECK(relative_text(0.312) == "31 %");
  CHECK(relative_text(4.12) == "412 %");
  CHECK(!same_bits(noise({4, 4}, 1, 0), noise({4, 4}, 1, 1)));
  CHECK(!same_bits(noise({4, 4}, 1, 0), noise({4, 4}, 2, 0)));
}

TEST_CASE("rms of an update: AdamW's is the formula's for every shape, and so is Muon's only with the matched scale") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<UpdateRms> all = update_rms_of_shapes(seed);
    const auto spread = [&](Scale scale) {
      double least = 1e9, most = 0;
      for (const UpdateRms& each : all) {
        least = std::min(least, each.scaled(scale));
        most = std::max(most, each.scaled(scale));
      }
      return most / least;
    };
    for (const UpdateRms& each : all) {
      CAPTURE(shape_text(each.shape.rows, each.shape.cols));
      CHECK(each.adamw == near(adamw_rms_on_noise(0.9), 0.08));
      const double largest = static_cast<double>(std::max(each.shape.rows, each.shape.cols));
      CHECK(each.orthogonal * std::sqrt(largest) > 0.7);  // coefficients leave singular values from 0.7 to 1.2
      CHECK(each.orthogonal * std::sqrt(largest) < 1.2);
      CHECK(each.scaled(Scale::none) == each.orthogonal);
      CHECK(each.scaled(Scale::largest) == near(5 * each.scaled(Scale::matched_rms), 1e-5));
    }
    CHECK(spread(Scale::matched_rms) < 1.25);
    CHECK(spread(Scale::largest) < 1.25);
    for (const Scale scale : {Scale::none, Scale::tall, Scale::ratio}) CHECK(spread(scale) > 1.8);
  }
  CHECK(adamw_rms_on_noise(0.9) == near(0.2294, 0.001));
}

TEST_CASE("rms of an update: the table has a line for each shape") {
  const std::vector<UpdateRms> all = update_rms_of_shapes(1);
  const std::string table = update_rms_table(all, adamw_rms_on_noise(0.9));
  expect_fits(table);
  CHECK(lines_of(table).size() == all.size() + 2);
  for (const UpdateRms& each : all)
    CHECK(table.find(shape_text(each.shape.rows, each.shape.cols)) != std::string::npos);
}

TEST_CASE(
    "rms of weights: without decay it grows like the root of the steps, with decay it stops, by either optimizer") {
  MuonSettings muon;
  const std::vector<WeightRms> all = weight_rms(muon, 1);
  REQUIRE(all.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const WeightRms& each = all[i];
    CAPTURE(each.name);
    REQUIRE(each.rms.size() == std::size(kRmsSteps));
    CHECK(each.decays == (i % 2 == 0));
    CHECK(each.rms.front() == near(1, 0.05));
    if (each.decays) {
      CHECK(each.rms.back() < all[i + 1].rms.back() / 2);
      CHECK(each.rms.back() == near(each.rms[each.rms.size() - 2], 0.25));
    } else {
      // What was there at the beginning aside, four times the steps are twice the way.
      const auto way = [&](double rms) { return std::sqrt(rms * rms - 1); };
      CHECK(way(each.rms.back()) == near(2 * way(each.rms[3]), 0.25));
    }
  }
  CHECK(all[2].rms.front() == 1);  // before any step
  // Matched: one learning rate and one decay bring both to the same order of magnitude.
  CHECK(all[0].rms.back() / all[2].rms.back() > 0.5);
  CHECK(all[0].rms.back() / all[2].rms.back() < 2);
  // Where nothing but decay moves the matrix, it is what a factor per step leaves.
  muon.rms = 0;
  const std::vector<double> decayed = weight_rms(muon, 1)[0].rms;
  const double keep = 1 - static_cast<double>(muon.lr * muon.weight_decay);
  for (std::size_t i = 0; i < decayed.size(); ++i)
    CHECK(decayed[i] == near(decayed[0] * std::pow(keep, kRmsSteps[i]), 1e-4));
  muon = {};
  muon.weight_decay = 0;
  CHECK(weight_rms(muon, 1)[0].rms == weight_rms(muon, 1)[1].rms);
  expect_fits(weight_rms_table(all));
}

TEST_CASE("lines of recipes: each in which another differs, once; taken together they are the other recipe") {
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const Recipe& recipe : main_recipes()) {
      CAPTURE(recipe.name);
      RecipeTrial trial;
      trial.precision = precision;
      trial.steps = 3;
      const std::vector<LineEffect> effects = line_effects(recipe, trial);
      for (const Recipe& other : main_recipes()) {
        std::size_t differ = 0, named = 0;
        for (const RecipeLine& line : recipe_lines())
          differ += line.text(recipe.settings) != line.text(other.settings) ? 1 : 0;
        for (const LineEffect& effect : effects)
          named += static_cast<std::size_t>(std::count(effect.recipes.begin(), effect.recipes.end(), other.name));
        CHECK(differ == named);
        MuonSettings all = recipe.settings;
        for (const RecipeLine& line : recipe_lines()) line.take(all, other.settings);
        CHECK(same_bits(trial.end(all), trial.end(other.settings)));
      }
      CHECK(trial.relative_distance(recipe.settings, recipe.settings) == 0);
    }
}

TEST_CASE("lines of recipes: what moves the weights far, what a little, and what not at all in float32") {
  RecipeTrial trial;
  const auto effect = [&](Precision precision, const std::string& about, const std::string& theirs) {
    trial.precision = precision;
    for (const LineEffect& each : line_effects(main_recipes()[0], trial))
      if (each.about == about && each.theirs == theirs) return each.distance;
    FAIL("no line ", about, " ", theirs);
    return 0.0;
  };
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    CHECK(effect(precision, "Nesterov", "no") > 0.01);
    CHECK(effect(precision, "coefficients", "polar_dion") > 0.01);
    CHECK(effect(precision, "scale", "√max(A,B)") > 2);  // four times the updates, but not four times the decay
    CHECK(effect(precision, "decay", "w−(lr·wd)·w") < 1e-5);
    CHECK(effect(precision, "decay", "w−(lr·wd)·w") > 0);
    CHECK(effect(precision, "divides by", "max(‖X‖,1e-07)") < (precision == Precision::fp32 ? 1e-5 : 1e-2));
  }
  CHECK(effect(Precision::fp32, "to bf16", "after division") == 0);
  CHECK(effect(Precision::fp32, "tall matrix", "X(XᵀX)") < 1e-5);
  CHECK(effect(Precision::bf16, "to bf16", "after division") > 1e-4);
  // Three multiplications round more often than one, and nothing else.
  CHECK(effect(Precision::fp32, "multiplied", "3 times") > 0);
  CHECK(effect(Precision::fp32, "multiplied", "3 times") < 1e-5);
  for (const Recipe& recipe : main_recipes()) expect_fits(line_table(recipe.name, 1));
}

TEST_CASE("split: three pieces are three matrices of their own, and anything else is another update") {
  for (const AttentionRows& attention : {AttentionRows{3, 1, 4, false}, AttentionRows{4, 2, 3, true},
                                         AttentionRows{2, 2, 5, false}, AttentionRows{6, 2, 2, true}}) {
    const Index cols = 13;
    const Matrix u = noise({attention.rows(), cols}, 5, 0);
    const Matrix three = split_update(u, attention, QkvSplit::three);
    for (const muonwalk::Piece& piece : qkv_pieces(attention, QkvSplit::three)) {
      NewtonSchulzSettings settings;
      settings.products = Products::chain;
      Matrix alone = newton_schulz(take_rows(u, piece), settings);
      const float scale = 0.2f * std::sqrt(static_cast<float>(std::max(piece.count(), cols)));
      for (float& value : alone.flat()) value *= scale;
      CHECK(same_bits(alone, take_rows(three, piece)));
    }
    const SplitError none = split_error(attention, cols, QkvSplit::none, 1, 5);
    const SplitError same = split_error(attention, cols, QkvSplit::three, 1, 5);
    const SplitError heads = split_error(attention, cols, QkvSplit::heads, 1, 5);
    CHECK(none.calls == 1);
    CHECK(same.calls == 3);
    CHECK(heads.calls == attention.heads + 2 * attention.kv_heads);
    for (const double error : {same.all, same.q, same.k, same.v}) CHECK(error == 0);
    for (const double error : {none.all, none.q, none.k, none.v}) CHECK(error > 0.02);
    // The squares of q, k and v add up to those of all, so `all` lies between the least and the most of them.
    CHECK(none.all <= std::max({none.q, none.k, none.v}));
    CHECK(none.all >= std::min({none.q, none.k, none.v}));
  }
  // What is small drowns in what is large, in one call and not in three.
  const AttentionRows attention{8, 2, 16, false};
  const SplitError drowned = split_error(attention, 128, QkvSplit::none, 0.1f, 1);
  const SplitError alike = split_error(attention, 128, QkvSplit::none, 1, 1);
  CHECK(drowned.k > alike.k + 0.1);
  CHECK(drowned.v > alike.v + 0.1);
  CHECK(drowned.q < alike.q - 0.1);
  expect_fits(split_table(attention, 128, 1));
}

TEST_CASE("split: the heads of some rows, whole, by halves, and by rows") {
  const AttentionRows plain{3, 1, 4, false};
  CHECK(heads_text(plain, {0, 10}) == "q head 0, q head 1, half of q head 2");
  CHECK(heads_text(plain, {10, 20}) == "half of q head 2, k head 0, v head 0");
  CHECK(heads_text(plain, {3, 5}) == "1 of 4 rows of q head 0, 1 of 4 rows of q head 1");
  CHECK(heads_text(plain, {0, 20}) == "q head 0, q head 1, q head 2, k head 0, v head 0");
  CHECK(heads_text(plain, {4, 4}).empty());
}

TEST_CASE("norms: an ε that is added takes over where the input is small, and a smaller one does not") {
  Normalization added, tiny;
  tiny.epsilon = 1e-15;
  const double whole = output_norm({64, 64}, 1, added, 5, 1);
  CHECK(whole > 0.7 * 8);
  CHECK(whole < 1.2 * 8);
  CHECK(output_norm({64, 64}, 1e-2, added, 5, 1) == near(whole, 0.001));
  CHECK(output_norm({64, 64}, 1e-9, added, 5, 1) < 0.7 * whole);
  for (const double norm : {1e-2, 1e-6, 1e-10}) CHECK(output_norm({64, 64}, norm, tiny, 5, 1) == near(whole, 0.001));
  // What was published of a larger matrix, at a norm of 1e-10: six steps multiply by the first coefficient, for any
  // shape.
  for (const Shape shape : {Shape{64, 64}, Shape{16, 48}, Shape{128, 128}}) {
    CHECK(output_norm(shape, 1e-10, added, 6, 1) == near(1.67, 0.06));
    CHECK(output_norm(shape, 1e-10, added, 5, 1) == near(std::pow(3.4445, 5) * 1e-10 / (1e-10 + 1e-7), 0.02));
  }
  const std::string table = norm_table(1);
  expect_fits(table);
  for (const int steps : {5, 6}) {
    const std::string line = lines_of(table)[steps == 5 ? 1 : 5];
    CHECK(line.find(fmt::format("{:.2f}", output_norm({64, 64}, 1e-10, added, steps, 1))) == line.size() - 4);
  }
  CHECK(times("\n", table) == 5);
}

TEST_CASE("monitored: what a monitor should say, what is near, and what is not") {
  const auto one = [](const Flat& values) { return Matrix(1, static_cast<Index>(values.size()), values); };
  std::vector<NamedMatrix> before, after;  // of all matrices, and more behind them
  for (const Parameter& each : kMatrices) {
    before.push_back({each.name, one({4, 8})});
    after.push_back({each.name, one({1, 10})});
  }
  before.push_back({"gains", one({1})});
  after.push_back({"gains", one({2})});
  const Matrix row = expected_row(before, after, 0.5);
  REQUIRE(row.size() == 2 * static_cast<Index>(kMatrices.size()));
  for (std::size_t p = 0; p < kMatrices.size(); ++p) {
    CHECK(double{row.flat()[2 * p]} == near(std::sqrt((1 + 100) / 2.0), 1e-6));
    CHECK(double{row.flat()[2 * p + 1]} == near(std::sqrt((1 + 36) / 2.0), 1e-6));  // 4/2 − 1 and 8/2 − 10
  }
  CHECK(same_bits(row_of({{5, 6}, {7, 8}}), one({5, 6, 7, 8})));

  const Matrix wanted = one({1, 100}), close = one({1.00001f, 99.999f}), far = one({1.001f, 100});
  CHECK(same_bits(near_as_equal({close}, {wanted}, 1e-4)[0], wanted));
  CHECK(same_bits(near_as_equal({far}, {wanted}, 1e-4)[0], far));
  CHECK(near_as_equal({close, far}, {wanted}, 1e-4).size() == 2);
  const Matrix other(2, 1, Flat{1, 100}), none = one({std::nanf("")});
  CHECK(same_bits(near_as_equal({other}, {wanted}, 1e-4)[0], other));
  CHECK(same_bits(near_as_equal({none}, {Matrix(1, 1)}, 1e-4)[0], none));

  const std::string table = monitor_table({{{"x", wanted}}, {{"x", far}}}, {{"a", {1, 2}}});
  CHECK(lines_of(table).size() == 2);
  CHECK(table.find("x                             100.0000 / 1.00") != std::string::npos);
  CHECK(monitor_table({}, kMatrices).empty());
}
