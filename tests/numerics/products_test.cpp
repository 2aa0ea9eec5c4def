#include "src/numerics/products.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>

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

}  // namespace

TEST_CASE("products: any shape, also beyond the blocks of rows and of depth, any number of threads: the plain chains") {
  struct Shape {
    Index m, k, n;
  };
  for (const Shape& shape : {Shape{0, 4, 3}, Shape{1, 1, 1}, Shape{17, 33, 14}, Shape{1030, 20, 40},
                             Shape{20, 1100, 70}, Shape{257, 256, 257}, Shape{40, 513, 520}}) {
    CAPTURE(shape.m);
    CAPTURE(shape.k);
    CAPTURE(shape.n);
    const Matrix left = random_matrix({1, 0}, shape.m, shape.k);
    const Matrix right = random_matrix({1, 1}, shape.k, shape.n);
    const Matrix expected = plain_product(left, right);
    const Matrix square = plain_product(left, left.transposed());
    // A symmetric A and c A: rounding c A makes the plain product asymmetric in its last bits; the lower half decides.
    Matrix scaled = square, mirrored;
    for (float& value : scaled.flat()) value *= 2.0315f;
    if (shape.m < 50) mirrored = plain_product(scaled, square);
    for (Index i = 0; i < mirrored.rows(); ++i)
      for (Index j = i + 1; j < mirrored.cols(); ++j) mirrored(i, j) = mirrored(j, i);
    for (int threads : {1, 2, 3, 7}) {
      CAPTURE(threads);
      Matrix out;
      multiply(left, right, out, threads);
      REQUIRE(same_bits(out, expected));
      symmetric_product(left, left, out, threads);
      REQUIRE(same_bits(out, square));
      if (shape.m >= 50) continue;
      symmetric_product(scaled, square, out, threads);
      REQUIRE(same_bits(out, mirrored));
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
