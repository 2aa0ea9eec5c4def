#include "src/numerics/newton_schulz.hpp"

#include <doctest/doctest.h>

#include <Eigen/SVD>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "src/numerics/bf16_rounding.hpp"
#include "src/numerics/eigen_view.hpp"
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/near.hpp"

using namespace muonwalk;

namespace {

const float not_a_number = std::numeric_limits<float>::quiet_NaN();
const float infinity = std::numeric_limits<float>::infinity();

// What the iteration does in exact arithmetic: the singular vectors of x stay, and each singular value σ becomes the
// quintic applied `steps` times to σ / (‖x‖ + 1e-7).
Eigen::MatrixXd by_svd(const Matrix& x, int steps) {
  const Eigen::MatrixXd values = eigen_view(x).cast<double>();
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(values, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Quintic q;
  Eigen::VectorXd sigma = svd.singularValues() / (values.norm() + 1e-7);
  for (int step = 0; step < steps; ++step) {
    for (double& s : sigma) s = q.a * s + q.b * s * s * s + q.c * s * s * s * s * s;
  }
  return svd.matrixU() * sigma.asDiagonal() * svd.matrixV().transpose();
}

double largest_difference(const Matrix& x, const Eigen::MatrixXd& expected) {
  return (eigen_view(x).cast<double>() - expected).cwiseAbs().maxCoeff();
}

double relative_difference(const Matrix& x, const Eigen::MatrixXd& expected) {
  return (eigen_view(x).cast<double>() - expected).norm() / expected.norm();
}

NewtonSchulzSettings with(Products products, Precision precision = Precision::fp32) {
  NewtonSchulzSettings settings;
  settings.products = products;
  settings.precision = precision;
  return settings;
}

const Products engines[] = {Products::eigen, Products::chain};
const NewtonSchulzSettings all_settings[] = {with(Products::eigen), with(Products::chain),
                                             with(Products::eigen, Precision::bf16),
                                             with(Products::chain, Precision::bf16)};

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

// A small singular value grows by a factor 3.4445 per step, 485 in five, and so does the rounding error of half an ULP
// (2⁻²⁴ of numbers below 1) at its place. Measured: 1.5e-6 at most.
const double fp32_tolerance = 485 * std::ldexp(1.0, -24);  // 2.9e-5
// In bf16 half an ULP is 2⁻⁹, and a single element may be off by a whole unit in the direction of a tiny singular
// value. Over the whole matrix the errors are those of the larger singular values.
const double bf16_tolerance = 0.12;  // of the Frobenius norm

}  // namespace

TEST_CASE(
    "newton_schulz: any shape: the quintic applied five times to the singular values, to the precision's roundings") {
  double worst = 0, worst_bf16 = 0;
  for (const Shape& shape : shapes)
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      CAPTURE(seed);
      CAPTURE(shape.rows);
      CAPTURE(shape.cols);
      const Matrix x = random_matrix({seed, 1}, shape.rows, shape.cols);
      const auto expected = by_svd(x, 5);
      for (const Products products : engines) {
        worst = std::max(worst, largest_difference(newton_schulz(x, with(products)), expected));
        REQUIRE(worst < fp32_tolerance);
        const Matrix result = newton_schulz(x, with(products, Precision::bf16));
        worst_bf16 = std::max(worst_bf16, relative_difference(result, expected));
        REQUIRE(worst_bf16 < bf16_tolerance);
        for (float value : result.flat()) REQUIRE(static_cast<float>(bfloat16(value)) == value);
      }
    }
  MESSAGE("largest difference ", worst, " of ", fp32_tolerance, "; in bf16 ", worst_bf16, " of ", bf16_tolerance);
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

TEST_CASE("newton_schulz: huge matrices whose norm is not a float, and tiny ones, stay finite") {
  Matrix huge(100, 120);
  for (Index i = 0; i < huge.size(); ++i) huge.data()[i] = i % 3 ? 3e38f : -1e38f;
  CHECK(frobenius_norm(huge) > std::numeric_limits<float>::max());
  for (const Products products : engines) {
    CHECK(largest_difference(newton_schulz(huge, with(products)), by_svd(huge, 5)) < fp32_tolerance);
    CHECK(relative_difference(newton_schulz(huge, with(products, Precision::bf16)), by_svd(huge, 5)) < bf16_tolerance);
  }
  for (const auto& settings : all_settings) {
    for (float tiny : {1e-40f, std::numeric_limits<float>::denorm_min(), 1e-20f}) {
      Matrix x(5, 7);
      for (float& value : x.flat()) value = tiny;
      const Matrix result = newton_schulz(x, settings);
      CHECK(all_finite(result));
      // Far below the 1e-7 beside the norm, the steps only multiply by a: 3.4445⁵.
      if (tiny == 1e-20f) CHECK(result(2, 3) == near(1e-20 / 1e-7 * 484.9, 0.1));
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

TEST_CASE("newton_schulz: holds at most 2 m n + 2 m² elements beside its input, m² more in bf16") {
  for (const Shape& shape : {Shape{20, 30}, Shape{30, 20}}) {
    for (const auto& settings : all_settings) {
      MemoryMeter meter;
      MeterScope scope(meter);
      const Matrix x = random_matrix({1, 1}, shape.rows, shape.cols);
      meter.restart_peak();
      newton_schulz(x, settings);
      const int squares = settings.precision == Precision::bf16 ? 3 : 2;
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
}

TEST_CASE("newton_schulz_flops_by_halves: half of each symmetric product is saved, in bf16 of A alone") {
  CHECK(newton_schulz_flops_by_halves(676, 876, Precision::fp32) == 15.0 * 676 * 676 * 876 + 5.0 * 676 * 676 * 676);
  CHECK(newton_schulz_flops_by_halves(876, 676, Precision::fp32) ==
        newton_schulz_flops_by_halves(676, 876, Precision::fp32));
  CHECK(newton_schulz_flops_by_halves(3, 4, Precision::bf16, 2) == 2 * (3 * 9 * 4 + 2 * 27));
}
