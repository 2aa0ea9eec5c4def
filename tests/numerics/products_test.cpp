#include "src/numerics/products.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "src/numerics/packed_product.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/simd.hpp"

using namespace muonwalk;

namespace {

float step(float left, float right, float sum) {
  return multiply_add_is_fused ? std::fma(left, right, sum) : left * right + sum;
}

// The definition: one chain of multiply-adds an element.
Matrix plain_product(const Matrix& left, const Matrix& right) {
  Matrix out(left.rows(), right.cols());
  for (Index i = 0; i < out.rows(); ++i) {
    for (Index j = 0; j < out.cols(); ++j) {
      float sum = 0;
      for (Index k = 0; k < left.cols(); ++k) sum = step(left(i, k), right(k, j), sum);
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

TEST_CASE(
    "compute: the scaled left factor and the scaled addend are where the formula says, with any mixture of options") {
  for (std::uint32_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    RandomSizes size(seed);
    const bool symmetric = seed % 3 == 0;
    // Every fourth case runs over several blocks of depth: the addend may enter only once.
    const Index m = size(), k = size() + (seed % 4 == 0 ? 500 : 0), n = symmetric ? m : size();
    CAPTURE(m);
    CAPTURE(k);
    CAPTURE(n);
    Matrix left = random_matrix({seed, 0}, m, k);
    // A symmetric result needs a right factor that makes it so; leftᵀ does, and the addend must be symmetric as well.
    const Matrix right = symmetric ? left.transposed() : random_matrix({seed, 1}, k, n);
    Matrix addend = random_matrix({seed, 2}, m, n);
    if (symmetric) {
      for (Index i = 0; i < m; ++i) {
        for (Index j = 0; j < i; ++j) addend(j, i) = addend(i, j);
      }
    }
    const Matrix right_transposed = right.transposed();
    PackedProduct product;
    product.rows = m;
    product.cols = n;
    product.depth = k;
    product.left = left.data();
    product.left_scale = seed % 2 ? 1.0f : -0.37f;
    product.right_transposed = seed % 5 < 2;
    product.right = product.right_transposed ? right_transposed.data() : right.data();
    product.addend = seed % 7 == 0 ? nullptr : addend.data();
    product.addend_scale = 3.4445f;
    product.symmetric = symmetric;
    Matrix expected(m, n);
    for (Index i = 0; i < m; ++i) {
      for (Index j = 0; j < n; ++j) {
        const Index row = symmetric ? std::max(i, j) : i;
        const Index col = symmetric ? std::min(i, j) : j;
        float sum = product.addend ? product.addend_scale * addend(row, col) : 0.0f;
        for (Index d = 0; d < k; ++d) sum = step(product.left_scale * left(row, d), right(d, col), sum);
        expected(i, j) = sum;
      }
    }
    for (int threads : {1, 2, 7}) {
      Matrix out(m, n);
      product.out = out.data();
      compute(product, threads);
      REQUIRE(same_bits(out, expected));
    }
  }
}

TEST_CASE("products: a part of a product has the bits of the product of the part") {
  const Matrix left = random_matrix({3, 0}, 90, 300);
  const Matrix right = random_matrix({3, 1}, 300, 75);
  Matrix whole;
  multiply(left, right, whole);
  for (Index top : {0, 1, 17, 45}) {
    for (Index rows : {1, 14, 45}) {
      const Matrix part(rows, 300, Flat(left.data() + top * 300, left.data() + (top + rows) * 300));
      Matrix out;
      multiply(part, right, out);
      REQUIRE(same_bits(out, Matrix(rows, 75, Flat(whole.data() + top * 75, whole.data() + (top + rows) * 75))));
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

TEST_CASE("compute: the factors may lie at any address, aligned or not") {
  const Index m = 30, k = 41, n = 37;
  const Matrix left = random_matrix({5, 0}, m, k);
  const Matrix right = random_matrix({5, 1}, k, n);
  const Matrix expected = plain_product(left, right);
  std::vector<float> memory(static_cast<std::size_t>(m * k + k * n + m * n) + 64);
  for (Index shift = 0; shift < 17; ++shift) {
    PackedProduct product;
    product.rows = m;
    product.cols = n;
    product.depth = k;
    float* const l = memory.data() + shift;
    float* const r = l + m * k;
    std::copy_n(left.data(), m * k, l);
    std::copy_n(right.data(), k * n, r);
    product.left = l;
    product.right = r;
    product.out = r + k * n;
    compute(product, 1);
    REQUIRE(same_bits(Matrix(m, n, Flat(product.out, product.out + m * n)), expected));
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
  CHECK_THROWS_AS(symmetric_product(x, Matrix(4, 3), out), std::invalid_argument);
  Matrix square(3, 3);
  CHECK_THROWS_AS(multiply(square, y, square), std::invalid_argument);
  CHECK_THROWS_AS(multiply(x, square, square), std::invalid_argument);
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
