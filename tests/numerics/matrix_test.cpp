#include "src/numerics/matrix.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

#include "src/numerics/philox.hpp"

using namespace muonwalk;

TEST_CASE("Matrix: a new one is zero, row-major, and aligned to a cache line") {
  Matrix x(3, 4);
  CHECK(x.rows() == 3);
  CHECK(x.cols() == 4);
  CHECK(x.size() == 12);
  CHECK(x.bytes() == 48);
  CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % 64 == 0);
  for (float value : x.flat()) CHECK(value == 0.0f);
  x(1, 2) = 5;
  CHECK(x.flat()[6] == 5);
  CHECK(Matrix().empty());
  CHECK(Matrix(0, 7).empty());
  CHECK(Matrix(0, 7).cols() == 7);
}

TEST_CASE("Matrix: transposing any shape moves every element, and twice is the identity") {
  for (Index rows : {0, 1, 2, 15, 16, 17, 31, 32, 33, 70}) {
    for (Index cols : {0, 1, 3, 16, 32, 33, 65}) {
      CAPTURE(rows);
      CAPTURE(cols);
      const Matrix x = random_matrix({1, 2}, rows, cols);
      const Matrix t = x.transposed();
      REQUIRE(t.rows() == cols);
      REQUIRE(t.cols() == rows);
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < cols; ++j) REQUIRE(t(j, i) == x(i, j));
      }
      REQUIRE(same_bits(t.transposed(), x));
    }
  }
}

TEST_CASE("MemoryMeter: scopes nest, belong to their thread, and nobody needs one") {
  CHECK(MemoryMeter::current() == nullptr);
  const Matrix uncounted(5, 5);
  MemoryMeter outer;
  MemoryMeter inner;
  {
    MeterScope scope(outer);
    Matrix x(2, 2);
    {
      MeterScope nested(inner);
      CHECK(MemoryMeter::current() == &inner);
      Matrix y(3, 3);
    }
    CHECK(MemoryMeter::current() == &outer);
    std::thread([] {
      CHECK(MemoryMeter::current() == nullptr);
      Matrix z(4, 4);
    }).join();
  }
  CHECK(MemoryMeter::current() == nullptr);
  CHECK(outer.peak() == 4);
  CHECK(inner.peak() == 9);
  CHECK(inner.live() == 0);
}

TEST_CASE("Matrix: values are viewed as a shape that can be, and no other") {
  for (const auto& [rows, cols] : {std::pair<Index, Index>{-1, 4}, {4, -1}, {-2, -3}, {0, -3}}) {
    const std::string sentence = "a matrix of " + shape_text(rows, cols) +
                                 " was asked for, but a size cannot be negative; give zero or more rows and columns";
    CHECK_THROWS_WITH_AS(Matrix(rows, cols), sentence.c_str(), std::invalid_argument);
    CHECK_THROWS_WITH_AS(Matrix(rows, cols, Flat(6)), sentence.c_str(), std::invalid_argument);
  }
  const std::string large =
      "a matrix of 4294967296 × 4294967296 was asked for, but its bytes do not fit in 63 bits; "
      "give a smaller shape";
  CHECK_THROWS_WITH_AS(Matrix(Index{1} << 32, Index{1} << 32), large.c_str(), std::invalid_argument);
  CHECK_THROWS_WITH_AS(Matrix(Index{1} << 32, Index{1} << 32, Flat()), large.c_str(), std::invalid_argument);
  CHECK_THROWS_WITH_AS(Matrix(4, 3, Flat(13)),
                       "13 values cannot be viewed as 4 × 3, which needs 12; give a shape of that many elements",
                       std::invalid_argument);
  // The largest that bytes can count, of either orientation, is not refused for its shape, and one more is.
  const Index most = std::numeric_limits<Index>::max() / 4;
  for (const auto& [rows, cols] : {std::pair{most, Index{1}}, {Index{1}, most}, {most / 3, Index{3}}}) {
    CHECK_THROWS_AS(Matrix(rows, cols), std::bad_alloc);
    CHECK_THROWS_WITH_AS(Matrix(rows, cols, Flat(2)),
                         ("2 values cannot be viewed as " + shape_text(rows, cols) + ", which needs " +
                          std::to_string(rows * cols) + "; give a shape of that many elements")
                             .c_str(),
                         std::invalid_argument);
  }
  for (const auto& [rows, cols] : {std::pair{most + 1, Index{1}}, {Index{1}, most + 1}, {most / 3 + 1, Index{3}}})
    CHECK_THROWS_WITH_AS(Matrix(rows, cols),
                         ("a matrix of " + shape_text(rows, cols) +
                          " was asked for, but its bytes do not fit in 63 bits; give a smaller shape")
                             .c_str(),
                         std::invalid_argument);
  CHECK(Matrix(Index{1} << 62, 0).rows() == Index{1} << 62);
  CHECK(Matrix(0, Index{1} << 62).cols() == Index{1} << 62);
  CHECK(Matrix(7, 0).empty());
  CHECK_FALSE(Matrix(1, 1).empty());
  const Matrix x(2, 3, {1, 2, 3, 4, 5, 6});
  CHECK(x(0, 2) == 3);
  CHECK(x(1, 0) == 4);
  CHECK(shape_text(12, 3) == "12 × 3");
}

TEST_CASE("same_bits: any one bit of any element makes a difference, and so do rows alone and columns alone") {
  const Matrix x = random_matrix({4, 2}, 3, 5);
  for (Index i = 0; i < x.size(); ++i)
    for (int bit = 0; bit < 32; ++bit) {
      Matrix y = x;
      reinterpret_cast<unsigned char*>(y.data() + i)[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8);
      CHECK_FALSE(same_bits(x, y));
      CHECK_FALSE(same_bits(y, x));
    }
  for (const auto& [rows, cols] : {std::pair<Index, Index>{2, 4}, {2, 2}, {1, 3}, {3, 3}, {3, 2}, {6, 1}}) {
    CHECK_FALSE(same_bits(Matrix(2, 3), Matrix(rows, cols)));
    CHECK_FALSE(same_bits(Matrix(rows, cols), Matrix(2, 3)));
  }
  CHECK_FALSE(same_bits(Matrix(0, 3), Matrix(0, 4)));
  CHECK_FALSE(same_bits(Matrix(3, 0), Matrix(4, 0)));
  CHECK(same_bits(Matrix(0, 3), Matrix(0, 3)));
}
