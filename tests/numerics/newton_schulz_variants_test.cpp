// The ways in which implementations of Newton–Schulz differ, one by one and together, and who computes it.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/near.hpp"

using namespace muonwalk;

namespace {

using Doubles = std::vector<std::vector<double>>;

Doubles in_doubles(const Matrix& x) {
  Doubles result(static_cast<std::size_t>(x.rows()), std::vector<double>(static_cast<std::size_t>(x.cols())));
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.cols(); ++j) result[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = x(i, j);
  return result;
}

// left · right, as plain as can be.
Doubles times(const Doubles& left, const Doubles& right) {
  Doubles result(left.size(), std::vector<double>(right[0].size()));
  for (std::size_t i = 0; i < result.size(); ++i)
    for (std::size_t k = 0; k < right.size(); ++k)
      for (std::size_t j = 0; j < right[0].size(); ++j) result[i][j] += left[i][k] * right[k][j];
  return result;
}

Quintic quintic_of_step(const NewtonSchulzSettings& settings, int step) {
  if (settings.schedule.empty()) return settings.quintic;
  return settings
      .schedule[static_cast<std::size_t>(std::min<int>(step, static_cast<int>(settings.schedule.size()))) - 1];
}

// The formula in double precision, of a tall matrix its transpose.
Doubles formula(const Matrix& given, const NewtonSchulzSettings& settings) {
  const Normalization& n = settings.normalization;
  Matrix rows = given;
  for (Index i = 0; n.equal_rows && i < rows.rows(); ++i) {
    double squares = 0;
    for (Index j = 0; j < rows.cols(); ++j) squares += std::pow(static_cast<double>(given(i, j)), 2);
    const double mean = frobenius_norm(given) / std::sqrt(static_cast<double>(rows.rows()));
    for (Index j = 0; j < rows.cols(); ++j) rows(i, j) = static_cast<float>(given(i, j) * mean / std::sqrt(squares));
  }
  Doubles x = in_doubles(rows.rows() > rows.cols() ? rows.transposed() : rows);
  const double cushioned = frobenius_norm(rows) * n.cushion;
  const double denominator = n.floor ? std::max(cushioned, n.epsilon) : cushioned + n.epsilon;
  for (auto& row : x)
    for (double& value : row) value /= denominator;
  for (int step = 1; step <= settings.steps; ++step) {
    const Quintic q = quintic_of_step(settings, step);
    Doubles transposed(x[0].size(), std::vector<double>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < x[0].size(); ++j) transposed[j][i] = x[i][j];
    const Doubles a = times(x, transposed);
    Doubles b = times(a, a);
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t j = 0; j < a.size(); ++j) b[i][j] = q.b * a[i][j] + q.c * b[i][j];
    const Doubles bx = times(b, x);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < x[0].size(); ++j) x[i][j] = q.a * x[i][j] + bx[i][j];
  }
  return x;
}

double furthest(const Matrix& result, const Doubles& expected) {
  const Matrix wide = result.rows() > result.cols() ? result.transposed() : result;
  double most = 0;
  for (Index i = 0; i < wide.rows(); ++i)
    for (Index j = 0; j < wide.cols(); ++j)
      most = std::max(most, std::fabs(wide(i, j) - expected[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)]));
  return most;
}

// The same in bf16, rounded wherever the settings' way rounds, with the chain's order in sums: bit for bit what chains
// compute.
Matrix rounded_formula(const Matrix& given, const NewtonSchulzSettings& settings) {
  const auto each = [](Matrix x, const auto& change) {
    for (float& value : x.flat()) value = nearest_bf16(change(value));
    return x;
  };
  const auto sum = [](const Matrix& left, Matrix right) {
    for (Index i = 0; i < right.size(); ++i) right.data()[i] = nearest_bf16(left.data()[i] + right.data()[i]);
    return right;
  };
  const auto unrounded_product = [](const Matrix& left, const Matrix& right) {
    Matrix out(left.rows(), right.cols());
    for (Index i = 0; i < out.rows(); ++i)
      for (Index j = 0; j < out.cols(); ++j) {
        float total = 0;
        for (Index k = 0; k < left.cols(); k += 2) {
          if (k + 1 < left.cols()) total = std::fma(left(i, k + 1), right(k + 1, j), total);
          total = std::fma(left(i, k), right(k, j), total);
        }
        out(i, j) = total;
      }
    return out;
  };
  const auto product = [&](const Matrix& left, const Matrix& right) {
    return each(unrounded_product(left, right), [](float value) { return value; });
  };
  // start · from + factor · left · right, rounded once
  const auto one_call = [&](float start, const Matrix& from, float factor, const Matrix& left, const Matrix& right) {
    Matrix out = unrounded_product(left, right);
    for (Index i = 0; i < out.size(); ++i)
      out.data()[i] = nearest_bf16(start * from.data()[i] + factor * out.data()[i]);
    return out;
  };
  const bool tall = given.rows() > given.cols();
  Matrix x = tall ? given.transposed() : given;
  const bool round_first = settings.normalization.round_first;
  if (round_first) x = each(x, [](float value) { return value; });
  if (settings.normalization.equal_rows) {
    const double mean = frobenius_norm(x) / std::sqrt(static_cast<double>(given.rows()));
    Matrix rows = tall ? x.transposed() : x;
    for (Index i = 0; i < rows.rows(); ++i) {
      double squares = 0;
      for (Index j = 0; j < rows.cols(); ++j) squares += std::pow(static_cast<double>(rows(i, j)), 2);
      const float factor = static_cast<float>(mean / std::sqrt(squares));
      for (Index j = 0; j < rows.cols(); ++j)
        rows(i, j) = round_first ? nearest_bf16(nearest_bf16(factor) * rows(i, j)) : factor * rows(i, j);
    }
    x = tall ? rows.transposed() : rows;
  }
  const double denominator = newton_schulz_denominator(
      frobenius_norm(x), round_first ? Precision::bf16 : Precision::fp32, settings.normalization);
  x = each(x, [&](float value) { return static_cast<float>(value / denominator); });
  const auto scaled = [&](float by, const Matrix& matrix) { return each(matrix, [by](float v) { return by * v; }); };
  const bool once = settings.lines == IterationLines::one_call;
  const auto polynomial = [&](const Quintic& q, const Matrix& a) {
    if (once) return one_call(q.b, a, q.c, a, a);
    const Matrix b = settings.lines != IterationLines::scaled_first ? sum(scaled(q.b, a), scaled(q.c, product(a, a)))
                                                                    : sum(scaled(q.b, a), product(scaled(q.c, a), a));
    return settings.from_the_right && tall ? b.transposed() : b;
  };
  const auto next = [&](float start, const Matrix& from, const Matrix& left) {
    return once ? one_call(start, from, 1, left, from) : sum(scaled(start, from), product(left, from));
  };
  const auto mirrored = [](Matrix square) {  // what is below the diagonal, above it as well
    for (Index i = 0; i < square.rows(); ++i)
      for (Index j = 0; j < i; ++j) square(j, i) = square(i, j);
    return square;
  };
  Matrix r, factor;
  for (int step = 1; step <= settings.steps; ++step) {
    const Quintic q = quintic_of_step(settings, step);
    if (settings.gram && x.rows() < x.cols()) {
      if (step == 1 || step == 3) {
        r = product(x, x.transposed());
        factor = polynomial(q, r);
        for (Index i = 0; i < r.rows(); ++i) factor(i, i) = nearest_bf16(factor(i, i) + nearest_bf16(q.a));
      } else {
        factor = mirrored(next(q.a, factor, polynomial(q, r)));
      }
      const Matrix z = polynomial(q, r);
      r = mirrored(next(q.a, mirrored(next(q.a, r, z)), z));
      if (step == 2 || step == settings.steps) x = next(0, x, factor);
      continue;
    }
    const Matrix a = product(x, x.transposed());
    x = once && q.c == 0 ? one_call(q.a, x, q.b, a, x) : next(q.a, x, polynomial(q, a));
  }
  return tall ? x.transposed() : x;
}

struct Way {
  const char* what;
  NewtonSchulzSettings settings;
};

std::vector<Way> ways() {
  std::vector<Way> all(19);
  all[0].what = "plain";
  all[1].what = "epsilon", all[1].settings.normalization.epsilon = 3.7;
  all[2].what = "floor below", all[2].settings.normalization.floor = true, all[2].settings.normalization.epsilon = 0.01;
  all[3].what = "floor above", all[3].settings.normalization.floor = true, all[3].settings.normalization.epsilon = 77;
  all[4].what = "cushion", all[4].settings.normalization.cushion = 1.3;
  all[5].what = "rounded after", all[5].settings.normalization.round_first = false;
  all[6].what = "schedule", all[6].settings.schedule = {{3.0f, -3.5f, 1.4f}, {}, {2.1f, -1.3f, 0.3f}};
  all[7].what = "product first", all[7].settings.lines = IterationLines::square_first;
  all[8].what = "from the right", all[8].settings.from_the_right = true;
  all[9].what = "product first, from the right";
  all[9].settings.lines = IterationLines::square_first, all[9].settings.from_the_right = true;
  all[10].what = "quintic", all[10].settings.quintic = {3.0f, -3.2f, 1.2f};
  all[11].what = "three steps", all[11].settings.steps = 3;
  all[12].what = "equal rows", all[12].settings.normalization.equal_rows = true;
  all[13].what = "one call", all[13].settings.lines = IterationLines::one_call;
  all[14].what = "one call, cubic", all[14].settings.lines = IterationLines::one_call;
  all[14].settings.quintic = {1.5f, -0.5f, 0};
  all[15].what = "gram", all[15].settings.gram = true;
  all[16].what = "gram, one call, seven steps", all[16].settings.steps = 7;
  all[16].settings.gram = true, all[16].settings.lines = IterationLines::one_call;
  all[17].what = "gram, one call, cubic", all[17].settings.quintic = {1.5f, -0.5f, 0};
  all[17].settings.gram = true, all[17].settings.lines = IterationLines::one_call;
  Way& last = all[18];
  last.what = "all";
  last.settings.schedule = {{3.1f, -3.6f, 1.5f}, {2.9f, -3.0f, 1.1f}};
  last.settings.normalization = {0.05, true, 1.1, false, true};
  last.settings.from_the_right = true;
  last.settings.steps = 4;
  return all;
}

const std::array<std::array<Index, 2>, 5> kShapes = {{{9, 5}, {5, 9}, {7, 7}, {70, 66}, {1, 6}}};

NewtonSchulzSettings by_chains() {
  NewtonSchulzSettings settings;
  settings.products = Products::chain;
  return settings;
}

}  // namespace

TEST_CASE("newton_schulz: in fp32 every way, tall, square and wide, by either engine: the formula in doubles") {
  for (const Way& way : ways())
    for (const auto& [rows, cols] : kShapes) {
      const Matrix x = random_matrix({21, 1}, rows, cols);
      const Doubles expected = formula(x, way.settings);
      for (const Products products : {Products::eigen, Products::chain})
        for (const int threads : {1, 2}) {
          CAPTURE(std::string(way.what));
          CAPTURE(shape_text(rows, cols));
          CAPTURE(std::string(products_name(products)));
          NewtonSchulzSettings settings = way.settings;
          settings.products = products;
          settings.threads = threads;
          CHECK(furthest(newton_schulz(x, settings), expected) < 3e-5);
        }
    }
}

TEST_CASE(
    "newton_schulz: in bf16 every way by chains: the rounded formula, bit for bit; in Eigen's words nearly always") {
  int same = 0, all = 0;
  for (const Way& way : ways()) {
    int unlike_plain = 0;
    for (const auto& [rows, cols] : kShapes)
      for (std::uint64_t seed = 1; seed <= (rows > 50 ? 1 : 8); ++seed) {
        CAPTURE(std::string(way.what));
        CAPTURE(shape_text(rows, cols));
        CAPTURE(seed);
        const Matrix x = random_matrix({seed, 22}, rows, cols);
        NewtonSchulzSettings settings = way.settings;
        settings.precision = Precision::bf16;
        const Matrix expected = rounded_formula(x, settings);
        settings.products = Products::chain;
        REQUIRE(same_bits(newton_schulz(x, settings), expected));
        settings.products = Products::eigen;
        const Matrix by_eigen = newton_schulz(x, settings);
        ++all;
        same += same_bits(by_eigen, expected);
        NewtonSchulzSettings plain;
        plain.precision = Precision::bf16;
        unlike_plain += !same_bits(by_eigen, newton_schulz(x, plain));
      }
    // So each of them makes a difference, but for a floor far below the norm, which eight bits don't tell from ε.
    CAPTURE(std::string(way.what));
    const bool alike = std::string(way.what) == "plain" || std::string(way.what) == "floor below";
    CHECK((unlike_plain == 0) == alike);
  }
  CHECK(same >= all * 95 / 100);
}

TEST_CASE("newton_schulz: in bf16 a step of sums of two terms has the same bits in Eigen's words and by chains") {
  for (const Way& way : ways())
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      CAPTURE(std::string(way.what));
      CAPTURE(seed);
      // No row and no column has more than two numbers, and of the transpose no row has.
      Matrix x = random_matrix({seed, 23}, 3, 2);
      x(static_cast<Index>(seed % 3), static_cast<Index>(seed % 2)) = 0;
      x(static_cast<Index>((seed + 1) % 3), static_cast<Index>((seed + 1) % 2)) = 0;
      NewtonSchulzSettings settings = way.settings;
      settings.precision = Precision::bf16;
      settings.steps = 1;
      const Matrix by_eigen = newton_schulz(x, settings);
      settings.products = Products::chain;
      CHECK(same_bits(newton_schulz(x, settings), by_eigen));
    }
}

TEST_CASE("newton_schulz: what is shown after each step is what as many steps give, by either engine and every way") {
  const Matrix x = random_matrix({25, 1}, 4, 7);
  for (const Way& way : ways())
    for (const Products products : {Products::eigen, Products::chain}) {
      CAPTURE(std::string(way.what));
      NewtonSchulzSettings settings = way.settings;
      settings.products = products;
      int expected_step = 0;
      const auto compare = [&](int step, const Matrix& seen) {
        CHECK(step == expected_step++);
        NewtonSchulzSettings fewer = settings;
        fewer.steps = step;
        CHECK(same_bits(seen, newton_schulz(x, fewer)));
      };
      newton_schulz(x, settings, "x", compare);
      CHECK(expected_step == settings.steps + 1);
    }
}

TEST_CASE(
    "gram: singular values over three orders of magnitude: near the formula, and the farther the coarser it rounds") {
  for (const auto& [rows, cols] : {std::array<Index, 2>{32, 96}, {96, 32}}) {
    // Its rows are orthogonal, by the first rows of a mirror of 96 dimensions, and from 1 to 1/1000 long.
    Matrix x(32, 96);
    for (Index i = 0; i < 32; ++i)
      for (Index j = 0; j < 96; ++j)
        x(i, j) = static_cast<float>(((i == j) - 2.0 / 96) * std::pow(10.0, -3.0 * static_cast<double>(i) / 31));
    if (rows > cols) x = x.transposed();
    for (const Products products : {Products::eigen, Products::chain}) {
      CAPTURE(std::string(products_name(products)));
      NewtonSchulzSettings settings;
      settings.products = products;
      settings.lines = IterationLines::one_call;
      const Doubles expected = formula(x, settings);
      const auto error = [&](bool gram, Precision precision) {
        settings.gram = gram, settings.precision = precision;
        return furthest(newton_schulz(x, settings), expected);
      };
      const double plain = error(false, Precision::fp32), on_gram = error(true, Precision::fp32);
      CHECK(on_gram > plain);
      CHECK(on_gram < 3e-4);
      CHECK(error(true, Precision::bf16) < 0.5);  // without a new beginning, numbers over 1
    }
  }
}

TEST_CASE("newton_schulz: huge matrices whose norm is not a float, and tiny ones: the formula, and nothing overflows") {
  Matrix huge(60, 70);
  for (Index i = 0; i < huge.size(); ++i) huge.data()[i] = i % 3 ? 3e38f : -1e38f;
  CHECK(frobenius_norm(huge) > std::numeric_limits<float>::max());
  for (const Products products : {Products::eigen, Products::chain}) {
    NewtonSchulzSettings settings;
    settings.products = products;
    CHECK(furthest(newton_schulz(huge, settings), formula(huge, settings)) < 3e-5);
    for (const float tiny : {1e-40f, std::numeric_limits<float>::denorm_min(), 1e-20f}) {
      Matrix x(5, 7);
      for (float& value : x.flat()) value = tiny;
      // Far below the 1e-7 beside the norm, the steps only multiply by a: 3.4445⁵.
      CHECK(newton_schulz(x, settings)(2, 3) == near(static_cast<double>(tiny) / 1e-7 * 484.9, 0.1));
    }
  }
  NewtonSchulzSettings settings = by_chains();
  settings.precision = Precision::bf16;
  CHECK(same_bits(newton_schulz(huge, settings), rounded_formula(huge, settings)));
}

TEST_CASE("transpose_in_place: every element is exchanged with its mirror image") {
  for (const Index size : {0, 1, 2, 3, 8, 33}) {
    Matrix x = random_matrix({26, 1}, size, size);
    const Matrix expected = x.transposed();
    transpose_in_place(x);
    CHECK(same_bits(x, expected));
  }
}

TEST_CASE("singular_values: in double precision, also of the smallest beside the largest") {
  Matrix x(2, 2, {1, 1, 1, 1});
  x(1, 1) = 1 + std::ldexp(1.0f, -20);
  // Their squares are the roots of λ² − s λ + d², s being the sum of all squares and d the determinant, 2⁻²⁰.
  const double s = 3 + static_cast<double>(x(1, 1)) * x(1, 1), d = std::ldexp(1.0, -20);
  const double largest = std::sqrt((s + std::sqrt(s * s - 4 * d * d)) / 2);
  const auto values = singular_values(x);
  REQUIRE(values.size() == 2);
  CHECK(values[0] == near(largest, 1e-14));
  CHECK(values[1] == near(d / largest, 1e-8));
  const Matrix random = random_matrix({27, 1}, 13, 29);
  double squares = 0;
  for (const double value : singular_values(random)) squares += value * value;
  CHECK(squares == near(pairwise_sum_of_squares(random.data(), random.size()), 1e-13));
  const auto transposed = singular_values(random.transposed()), same = singular_values(random);
  REQUIRE(same.size() == 13);
  for (std::size_t i = 0; i < same.size(); ++i) CHECK(transposed[i] == near(same[i], 1e-12));
  CHECK(std::is_sorted(same.rbegin(), same.rend()));
  CHECK(singular_values(Matrix(3, 0)).empty());
}

TEST_CASE(
    "ChainEngineScope: the plain formula by chains is left to the engine, with all it was asked for; nothing else") {
  const Matrix x = random_matrix({28, 1}, 3, 4);
  int calls = 0;
  NewtonSchulzSettings given;
  std::string name;
  const ChainEngine engine = [&](const Matrix& matrix, const NewtonSchulzSettings& settings,
                                 const std::string& parameter) {
    ++calls;
    given = settings;
    name = parameter;
    CHECK(same_bits(matrix, x));
    return Matrix(1, 1, {42});
  };
  const ChainEngineScope scope(engine);
  NewtonSchulzSettings settings = by_chains();
  settings.steps = 3;
  settings.precision = Precision::bf16;
  settings.threads = 2;
  settings.quintic = {2, 1, 0};
  CHECK(same_bits(newton_schulz(x, settings, "w7"), Matrix(1, 1, {42})));
  CHECK(calls == 1);
  CHECK(name == "w7");
  CHECK(given.steps == 3);
  CHECK(given.precision == Precision::bf16);
  CHECK(given.threads == 2);
  CHECK(given.quintic.a == 2);
  CHECK(given.products == Products::chain);
  CHECK(same_bits(newton_schulz(x, by_chains()), Matrix(1, 1, {42})));
  CHECK(name == "x");
  CHECK(calls == 2);

  CHECK(newton_schulz(x).rows() == 3);  // in Eigen's words
  int shown = 0;
  CHECK(newton_schulz(x, by_chains(), "x", [&](int, const Matrix&) { ++shown; }).rows() == 3);
  CHECK(shown == 6);
  std::vector<NewtonSchulzSettings> not_plain(8, by_chains());
  not_plain[0].schedule = {{}};
  not_plain[1].lines = IterationLines::square_first;
  not_plain[2].from_the_right = true;
  not_plain[3].normalization.epsilon = 1e-8;
  not_plain[4].normalization.floor = true;
  not_plain[5].normalization.cushion = 1.01;
  not_plain[6].normalization.round_first = false;
  not_plain[7].normalization.equal_rows = true;
  for (std::size_t i = 0; i < not_plain.size(); ++i) {
    CAPTURE(i);
    CHECK(newton_schulz(x, not_plain[i]).rows() == 3);
  }
  std::thread([&] { CHECK(newton_schulz(x, by_chains()).rows() == 3); }).join();
  CHECK(calls == 2);
}

TEST_CASE("ChainEngineScope: scopes nest, and behind the last one chains are computed here") {
  const Matrix x = random_matrix({28, 2}, 3, 4);
  const auto marks = [](float mark) -> ChainEngine {
    return [mark](const Matrix&, const NewtonSchulzSettings&, const std::string&) { return Matrix(1, 1, {mark}); };
  };
  const ChainEngine first = marks(1), second = marks(2), third = marks(3);
  const auto now = [&] {
    const Matrix result = newton_schulz(x, by_chains());
    return result.size() == 1 ? result(0, 0) : 0.0f;
  };
  CHECK(now() == 0);
  {
    const ChainEngineScope outer(first);
    CHECK(now() == 1);
    {
      const ChainEngineScope inner(second);
      CHECK(now() == 2);
      {
        const ChainEngineScope innermost(third);
        CHECK(now() == 3);
      }
      CHECK(now() == 2);
    }
    CHECK(now() == 1);
  }
  CHECK(now() == 0);
}
