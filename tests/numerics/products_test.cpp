#include "src/numerics/products.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "src/numerics/philox.hpp"

using namespace muonwalk;

namespace {

// The definition: one chain of multiply-adds an element.
Matrix plain_product(const Matrix& left, const Matrix& right) {
  Matrix out(left.rows(), right.cols());
  for (Index i = 0; i < out.rows(); ++i) {
    for (Index j = 0; j < out.cols(); ++j) {
      float sum = 0;
      for (Index k = 0; k < left.cols(); ++k) sum = std::fma(left(i, k), right(k, j), sum);
      out(i, j) = sum;
    }
  }
  return out;
}

struct RandomSizes {
  explicit RandomSizes(std::uint32_t seed) : random(seed) {}
  // Small sizes, and sizes around the edges of tiles, panels and blocks.
  Index operator()() {
    static const std::vector<Index> edges = {0, 1, 2, 13, 14, 15, 16, 17, 28, 29, 31, 32, 33, 48, 63, 64, 65, 100, 128};
    return random() % 2 ? edges[random() % edges.size()] : static_cast<Index>(1 + random() % 90);
  }
  std::mt19937 random;
};

}  // namespace

TEST_CASE(
    "multiply: any shape, any number of threads: every element is the plain chain of multiply-adds, bit for bit") {
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    RandomSizes size(seed);
    const Index m = size(), k = size(), n = size();
    CAPTURE(m);
    CAPTURE(k);
    CAPTURE(n);
    const Matrix left = random_matrix({seed, 0}, m, k);
    const Matrix right = random_matrix({seed, 1}, k, n);
    const Matrix expected = plain_product(left, right);
    Matrix out(3, 3);
    for (int threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      for (float& value : out.flat()) value = std::numeric_limits<float>::quiet_NaN();
      multiply(left, right, out, threads);
      REQUIRE(same_bits(out, expected));
    }
  }
}

TEST_CASE("symmetric_product: any shape, any number of threads: the plain product, mirrored, bit for bit") {
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    RandomSizes size(seed);
    const Index m = size(), k = size();
    CAPTURE(m);
    CAPTURE(k);
    const Matrix x = random_matrix({seed, 0}, m, k);
    Matrix expected = plain_product(x, x.transposed());
    Matrix out;
    for (int threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      for (float& value : out.flat()) value = std::numeric_limits<float>::quiet_NaN();
      symmetric_product(x, x, out, threads);
      REQUIRE(same_bits(out, expected));
      REQUIRE(same_bits(out, out.transposed()));
    }
    // A symmetric A and c A: rounding c A makes the plain product asymmetric in its last bits; the lower half decides.
    const Matrix a = out;
    Matrix scaled = a;
    for (float& value : scaled.flat()) value *= 2.0315f;
    expected = plain_product(scaled, a);
    for (Index i = 0; i < m; ++i) {
      for (Index j = i + 1; j < m; ++j) expected(i, j) = expected(j, i);
    }
    for (int threads : {1, 2, 5}) {
      symmetric_product(scaled, a, out, threads);
      REQUIRE(same_bits(out, expected));
    }
  }
}

TEST_CASE("products: sizes beyond the blocks of rows and of depth, at 1, 2, 3 and 7 threads") {
  struct Shape {
    Index m, k, n;
  };
  for (const Shape& shape : {Shape{1030, 20, 40}, Shape{20, 1100, 70}, Shape{257, 256, 257}, Shape{40, 513, 520}}) {
    CAPTURE(shape.m);
    CAPTURE(shape.k);
    CAPTURE(shape.n);
    const Matrix left = random_matrix({1, 0}, shape.m, shape.k);
    const Matrix right = random_matrix({1, 1}, shape.k, shape.n);
    const Matrix expected = plain_product(left, right);
    const Matrix expected_square = plain_product(left, left.transposed());
    for (int threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      Matrix out;
      multiply(left, right, out, threads);
      REQUIRE(same_bits(out, expected));
      symmetric_product(left, left, out, threads);
      REQUIRE(same_bits(out, expected_square));
    }
  }
}

TEST_CASE("products: factors that do not fit, or a result over a factor, are refused in words") {
  Matrix x(3, 4);
  Matrix y(3, 4);
  Matrix out;
  CHECK_THROWS_WITH_AS(
      multiply(x, y, out),
      "cannot multiply 3 × 4 by 3 × 4: the left factor needs as many columns as the right one has rows",
      std::invalid_argument);
  for (const auto& [rows, cols] : {std::pair<Index, Index>{4, 3}, {2, 4}, {3, 5}})
    CHECK_THROWS_AS(symmetric_product(x, Matrix(rows, cols), out), std::invalid_argument);
  Matrix square(3, 3);
  CHECK_THROWS_WITH_AS(multiply(square, y, square),
                       "a product cannot be written over one of its factors; give it a matrix of its own",
                       std::invalid_argument);
  CHECK_THROWS_AS(multiply(square, y, y), std::invalid_argument);
  CHECK_THROWS_AS(symmetric_product(x, x, x), std::invalid_argument);
}

TEST_CASE("products: a NaN or an infinity in a factor reaches exactly the elements that depend on it") {
  Matrix left = random_matrix({6, 0}, 20, 20);
  const Matrix right = random_matrix({6, 1}, 20, 37);
  left(7, 3) = std::numeric_limits<float>::quiet_NaN();
  Matrix out;
  multiply(left, right, out);
  for (Index i = 0; i < out.rows(); ++i) {
    for (Index j = 0; j < out.cols(); ++j) REQUIRE(std::isnan(out(i, j)) == (i == 7));
  }
}

namespace {

// Random numbers in some columns of a larger matrix; around them NaNs, which no product may touch.
struct Columns {
  Columns(std::mt19937& random, Index rows, Index cols) {
    const Index before = static_cast<Index>(random() % 20), after = static_cast<Index>(random() % 20);
    whole = Matrix(rows, before + cols + after);
    for (float& value : whole.flat()) value = std::numeric_limits<float>::quiet_NaN();
    first = before;
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < cols; ++j) whole(i, before + j) = static_cast<float>(random() % 2001) / 1000.0f - 1;
    seen = part_of(whole, 0, rows, first, cols);
  }
  float at(Index i, Index j) const { return seen.data[i * seen.row + j]; }
  Matrix whole;
  Index first = 0;
  MatrixView seen;
};

}  // namespace
