#include "src/numerics/newton_schulz.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/numerics/philox.hpp"

using namespace muonwalk;

namespace {

const float not_a_number = std::numeric_limits<float>::quiet_NaN();
const float infinity = std::numeric_limits<float>::infinity();

NewtonSchulzSettings with(Products products, Precision precision = Precision::fp32) {
  NewtonSchulzSettings settings;
  settings.products = products;
  settings.precision = precision;
  return settings;
}

const Products engines[] = {Products::eigen, Products::chain, Products::tiles};
const NewtonSchulzSettings all_settings[] = {
    with(Products::eigen), with(Products::chain), with(Products::eigen, Precision::bf16),
    with(Products::chain, Precision::bf16), with(Products::tiles, Precision::bf16)};

bool all_finite(const Matrix& x) {
  for (float value : x.flat()) {
    if (!std::isfinite(value)) return false;
  }
  return true;
}

struct Shape {
  Index rows, cols;
};
const std::vector<Shape> shapes = {{1, 1},   {1, 9},   {9, 1},   {2, 2},     {4, 6},    {6, 4},
                                   {16, 16}, {17, 33}, {60, 25}, {100, 100}, {31, 120}, {124, 90}};

}  // namespace

TEST_CASE("newton_schulz: in bf16 each of the three products adds in its engine's order") {
  // 1 + 2²⁴ + 1 − 2²⁴ is 1 in pairs, where a sum of 2²⁴ swallows a one, and 2 in tiles, where even and odd are apart.
  const Matrix row(1, 4, Flat{1, 16777216, 1, -16777216}), ones(1, 4, Flat{1, 1, 1, 1});
  for (const auto& [products, sum] : {std::pair(Products::chain, 1.0f), std::pair(Products::tiles, 2.0f)}) {
    NewtonSchulzSettings settings = with(products, Precision::bf16);
    settings.quintic = {0, 0, 1};
    Matrix x(4, 4), narrow(4, 1, Flat{1 / sum, 1, 1 / sum, 1});
    NewtonSchulzBuffers buffers(4, 4, Precision::bf16), of_narrow(4, 1, Precision::bf16);
    for (Index i = 0; i < 4; ++i)
      for (Index j = 0; j < 4; ++j) x(i, j) = i == 0 ? row(0, j) : ones(0, j);
    newton_schulz_gram(x, settings, buffers);
    CHECK(buffers.a(0, 1) == sum);  // X Xᵀ

    of_narrow.a = x;
    newton_schulz_update(narrow, 1, settings, of_narrow);
    CHECK(of_narrow.b(0, 0) == sum);  // A A
    CHECK(of_narrow.b(0, 1) == 16777216);
    CHECK(narrow(0, 0) == sum);  // B X
  }
}

TEST_CASE("newton_schulz_denominator: any norm, ε and cushion: the formula, in bf16 with eight bits after every step") {
  // To the nearest number of eight significant bits, of two the even one; what `remainder` takes away is exact.
  const auto eight_bits = [](double value) {
    return value == 0 ? 0 : value - std::remainder(value, std::ldexp(1.0, std::ilogb(value) - 7));
  };
  int floored = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    CAPTURE(i);
    const auto size = [i](std::uint64_t which) {  // of either factor: a float of many magnitudes
      return std::ldexp(1 + std::fabs(random_value({2, which}, i)), static_cast<int>(20 * random_value({3, which}, i)));
    };
    Normalization way;
    way.epsilon = i % 5 == 0 ? 1e-7 : size(0);
    way.cushion = i % 3 == 0 ? 1 : 1 + std::fabs(random_value({1, 0}, i));
    const double norm = i % 7 == 0 ? 0 : size(1), cushioned = norm * way.cushion;
    const double rounded = eight_bits(eight_bits(norm) * way.cushion);
    CHECK(newton_schulz_denominator(norm, Precision::fp32, way) == cushioned + way.epsilon);
    CHECK(newton_schulz_denominator(norm, Precision::bf16, way) == eight_bits(rounded + way.epsilon));
    way.floor = true;
    CHECK(newton_schulz_denominator(norm, Precision::fp32, way) == std::max(cushioned, way.epsilon));
    CHECK(newton_schulz_denominator(norm, Precision::bf16, way) == std::max(rounded, eight_bits(way.epsilon)));
    floored += rounded < way.epsilon;
  }
  CHECK(floored > 1000);
  CHECK(floored < 3000);
}

TEST_CASE("newton_schulz: a tall matrix gives the transpose of what its transpose gives, bit for bit") {
  for (const auto& settings : all_settings) {
    for (const Shape& shape : shapes) {
      const Matrix x = random_matrix({3, 1}, shape.rows, shape.cols);
      if (shape.rows == shape.cols) continue;
      REQUIRE(same_bits(newton_schulz(x.transposed(), settings), newton_schulz(x, settings).transposed()));
    }
  }
}

TEST_CASE("newton_schulz: 1, 2, 3 and 7 threads give the same bits") {
  for (auto settings : all_settings) {
    for (const Shape& shape : {Shape{1, 1}, Shape{5, 3}, Shape{100, 100}, Shape{124, 324}, Shape{456, 124}}) {
      CAPTURE(shape.rows);
      CAPTURE(shape.cols);
      const Matrix x = random_matrix({4, 1}, shape.rows, shape.cols);
      settings.threads = 1;
      const Matrix expected = newton_schulz(x, settings);
      for (int threads : {1, 2, 3, 7}) {
        CAPTURE(threads);
        settings.threads = threads;
        REQUIRE(same_bits(newton_schulz(x, settings), expected));
      }
    }
  }
}

TEST_CASE("newton_schulz: a zero matrix of any shape stays zero") {
  for (const auto& settings : all_settings) {
    for (const Shape& shape : {Shape{1, 1}, Shape{3, 5}, Shape{40, 7}, Shape{0, 4}, Shape{4, 0}, Shape{0, 0}}) {
      for (float zero : {0.0f, -0.0f}) {
        Matrix x(shape.rows, shape.cols);
        for (float& value : x.flat()) value = zero;
        const Matrix result = newton_schulz(x, settings);
        CHECK(result.rows() == shape.rows);
        CHECK(result.cols() == shape.cols);
        for (float value : result.flat()) REQUIRE(value == 0.0f);
      }
    }
  }
}

TEST_CASE("newton_schulz: a NaN or an infinity is refused with the parameter, the row and the column, tall or wide") {
  for (const auto& settings : all_settings) {
    for (const Shape& shape : {Shape{6, 9}, Shape{9, 8}, Shape{8, 8}}) {
      Matrix x = random_matrix({7, 1}, shape.rows, shape.cols);
      x(4, 7) = not_a_number;
      CHECK_THROWS_WITH_AS(
          newton_schulz(x, settings, "w3"),
          "parameter \"w3\" holds a NaN at row 4, column 7; Newton–Schulz needs finite numbers, so check "
          "the gradients that were passed in",
          UsageError);
      x(4, 7) = -infinity;
      CHECK_THROWS_WITH_AS(newton_schulz(x, settings, "layers.0.up"),
                           "parameter \"layers.0.up\" holds an infinity at row 4, column 7; Newton–Schulz needs finite "
                           "numbers, so check the gradients that were passed in",
                           UsageError);
    }
  }
  Matrix largest(2, 2);
  largest(1, 0) = std::numeric_limits<float>::max();
  CHECK(all_finite(newton_schulz(largest)));
  CHECK_THROWS_WITH_AS(newton_schulz(largest, with(Products::eigen, Precision::bf16), "w0"),
                       "parameter \"w0\" holds a number that rounds to an infinity in bfloat16 at row 1, column 0; "
                       "Newton–Schulz needs finite numbers, so check the gradients that were passed in",
                       UsageError);
}

TEST_CASE("newton_schulz: holds at most 2 m n + 2 m² elements beside its input, m² more in bf16, 2 m² by gram") {
  for (const Shape& shape : {Shape{20, 30}, Shape{30, 20}}) {
    for (int i = 0; i < 8; ++i) {
      NewtonSchulzSettings settings = all_settings[i % 4];
      settings.gram = i >= 4;
      MemoryMeter meter;
      MeterScope scope(meter);
      const Matrix x = random_matrix({1, 1}, shape.rows, shape.cols);
      meter.restart_peak();
      newton_schulz(x, settings);
      const int squares = (settings.precision == Precision::bf16 ? 3 : 2) + (settings.gram ? 2 : 0);
      CHECK(meter.peak() - x.size() == 2 * 20 * 30 + squares * 20 * 20);
      CHECK(meter.live() == x.size());
    }
  }
}

TEST_CASE("newton_schulz_flops: 20 m²n + 10 m³ in five steps, of either orientation") {
  CHECK(newton_schulz_flops(676, 876) == 20.0 * 676 * 676 * 876 + 10.0 * 676 * 676 * 676);
  CHECK(newton_schulz_flops(876, 676) == newton_schulz_flops(676, 876));
  CHECK(newton_schulz_flops(3, 4, 2) == 2 * (4 * 9 * 4 + 2 * 27));
  CHECK(newton_schulz_flops(0, 4) == 0);
  // On X Xᵀ: what the products of steps that begin (1, 3) and of those that go on (2, 4, …) come to.
  NewtonSchulzSettings gram;
  gram.gram = true;
  for (int steps = 0; steps <= 8; ++steps) {
    gram.steps = steps;
    const int begins = steps == 0 ? 0 : steps < 3 ? 1 : 2;
    int squares = 0;  // products of m × m: Z, then Q Z unless it begins, then Z R twice unless X follows
    for (int step = 1; step <= steps; ++step)
      squares += 1 + (step != 1 && step != 3) + 2 * (step != 2 && step != steps);
    for (const Shape& shape : {Shape{3, 5}, Shape{5, 3}})
      CHECK(newton_schulz_flops(shape.rows, shape.cols, gram) == begins * 4 * 9 * 5 + squares * 2 * 27);
    CHECK(newton_schulz_flops(4, 4, gram) == newton_schulz_flops(4, 4, steps));
  }
}

TEST_CASE("eigen_codes: all that this processor can run, the chosen one last; MUONWALK_EIGEN chooses another") {
  std::vector<std::string> names;
  for (const StepCode* code : eigen_codes()) names.push_back(code->name);
#ifdef __AVX2__
  std::vector<std::string> expected = {"avx2"};
#else
  std::vector<std::string> expected = {"plain"};
#endif
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    expected.push_back("avx512");
#endif
  CHECK(names == expected);
  const char* const chosen = std::getenv("MUONWALK_EIGEN");
  CHECK(std::string(eigen_code().name) == (chosen == nullptr ? expected.back() : chosen));
}

TEST_CASE("eigen_codes: sums of whole numbers are exact, so there every code has the same bits") {
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 8}, Shape{16, 16}, Shape{17, 33}, Shape{65, 131}, Shape{200, 201}})
    for (const Precision precision : {Precision::fp32, Precision::bf16}) {
      CAPTURE(shape_text(shape.rows, shape.cols));
      Matrix x = random_matrix({9, 1}, shape.rows, shape.cols);
      for (float& value : x.flat()) value = std::round(value);
      NewtonSchulzSettings settings = with(Products::eigen, precision);
      settings.quintic = {2, -1, 0.5f};
      const auto step_of = [&](const StepCode& code) {
        NewtonSchulzBuffers buffers(shape.rows, shape.cols, precision);
        code.gram(x, settings, buffers);
        code.polynomial(settings, buffers);
        code.next({x, buffers.b, buffers.next, settings.quintic.a}, settings);
        return buffers.next;
      };
      for (const StepCode* code : eigen_codes()) {
        CAPTURE(std::string(code->name));
        REQUIRE(same_bits(step_of(*code), step_of(*eigen_codes().front())));
      }
    }
}
