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

TEST_CASE("products: repeated calls have the same bits, whatever was allocated in between and whichever thread calls") {
  const Matrix left = random_matrix({4, 0}, 77, 130);
  const Matrix right = random_matrix({4, 1}, 130, 53);
  Matrix first;
  multiply(left, right, first);
  std::vector<Flat> in_between;
  for (std::size_t i = 0; i < 40; ++i) {
    in_between.emplace_back(1 + 37 * i);
    const Matrix left_elsewhere = left;
    const Matrix right_elsewhere = right;
    Matrix out;
    multiply(left_elsewhere, right_elsewhere, out);
    REQUIRE(same_bits(out, first));
  }
  Matrix from_thread;
  std::thread([&] { multiply(left, right, from_thread); }).join();
  CHECK(same_bits(from_thread, first));
}

TEST_CASE("products: factors that do not fit, or a result over a factor, are refused in words") {
  Matrix x(3, 4);
  Matrix y(3, 4);
  Matrix out;
  CHECK_THROWS_WITH_AS(
      multiply(x, y, out),
      "cannot multiply 3 × 4 by 3 × 4: the left factor needs as many columns as the right one has rows",
      std::invalid_argument);
  CHECK_THROWS_WITH_AS(symmetric_product(x, Matrix(4, 3), out),
                       "the symmetric product of 3 × 4 and 4 × 3 does not exist: both factors need the same shape",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(symmetric_product(x, Matrix(2, 4), out),
                       "the symmetric product of 3 × 4 and 2 × 4 does not exist: both factors need the same shape",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(symmetric_product(x, Matrix(3, 5), out),
                       "the symmetric product of 3 × 4 and 3 × 5 does not exist: both factors need the same shape",
                       std::invalid_argument);
  Matrix square(3, 3);
  CHECK_THROWS_WITH_AS(multiply(square, y, square),
                       "a product cannot be written over one of its factors; give it a matrix of its own",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(multiply(square, y, y),
                       "a product cannot be written over one of its factors; give it a matrix of its own",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(symmetric_product(x, x, x),
                       "a product cannot be written over one of its factors; give it a matrix of its own",
                       std::invalid_argument);
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

TEST_CASE(
    "chain_product: some columns of larger matrices, either factor transposed, sums that go on: the plain loops") {
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto size = [&] { return static_cast<Index>(random() % 3 == 0 ? 1 + random() % 200 : 1 + random() % 40); };
    const Index m = size(), n = size(), k = size() + (seed % 10 == 0 ? 400 : 0);
    const int way = static_cast<int>(seed % 3);
    const Sums sums = random() % 2 == 0 ? Sums::begin : Sums::go_on;
    const int threads = 1 + static_cast<int>(random() % 3);
    const Columns left = way == 2 ? Columns(random, k, m) : Columns(random, m, k);
    const Columns right = way == 1 ? Columns(random, n, k) : Columns(random, k, n);
    Columns out(random, m, n);
    Matrix expected = out.whole;
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        float sum = sums == Sums::go_on ? out.at(i, j) : 0.0f;
        for (Index at = 0; at < k; ++at)
          sum = std::fma(way == 2 ? left.at(at, i) : left.at(i, at), way == 1 ? right.at(j, at) : right.at(at, j), sum);
        expected(i, out.first + j) = sum;
      }
    (way == 0   ? chain_product
     : way == 1 ? chain_product_right_transposed
                : chain_product_left_transposed)(left.seen, right.seen, out.seen, sums, threads);
    REQUIRE(same_bits(out.whole, expected));
  }
}
