// The comparison with the reference: byte by byte, and the first difference in words.

#include "sim/classroom/comparison.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

float from_bits(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

NamedMatrix matrix(const std::string& name, Index rows, Index cols, float first = 0) {
  NamedMatrix made{name, Matrix(rows, cols), 0, 0};
  for (Index i = 0; i < rows * cols; ++i) made.matrix.data()[i] = first + static_cast<float>(i);
  return made;
}

Comparison compared(const std::vector<NamedMatrix>& held, const std::vector<NamedMatrix>& expected) {
  Comparison comparison;
  compare("rank 3  dp 1", held, expected, comparison);
  return comparison;
}

bool says(const Comparison& comparison, const std::string& words) {
  std::string text;
  for (const std::string& line : comparison.first) text += line + "\n";
  CAPTURE(text);
  const bool found = text.find(words) != std::string::npos;
  CHECK_MESSAGE(found, words);
  return found;
}

Comparison of_values(float held, float expected) {
  NamedMatrix here = matrix("w", 1, 1), there = here;
  here.matrix(0, 0) = held;
  there.matrix(0, 0) = expected;
  return compared({here}, {there});
}

}  // namespace

TEST_CASE("compare: the same bytes are equal, whatever they stand for") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (float value :
       {0.0f, -0.0f, 1.5f, nan, std::numeric_limits<float>::infinity(), from_bits(1), from_bits(0x7fc00001)}) {
    const Comparison comparison = of_values(value, value);
    CHECK(comparison.equal());
    CHECK(comparison.elements == 1);
    CHECK(comparison.different == 0);
  }
  CHECK(compared({}, {}).elements == 0);
}

TEST_CASE("compare: any one changed bit is found, at its row and column, with the rank and both values") {
  std::random_device device;
  const unsigned seed = device();
  CAPTURE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 200; ++i) {
    const Index rows = 1 + static_cast<Index>(random() % 5), cols = 1 + static_cast<Index>(random() % 7);
    NamedMatrix expected = matrix("w7", rows, cols, 1);
    expected.first_row = static_cast<Index>(random() % 100);
    expected.first_col = static_cast<Index>(random() % 100);
    NamedMatrix held = expected;
    const Index at = static_cast<Index>(random()) % (rows * cols);
    std::uint32_t bits = 0;
    std::memcpy(&bits, held.matrix.data() + at, 4);
    bits ^= 1u << (random() % 32);
    std::memcpy(held.matrix.data() + at, &bits, 4);
    const Comparison comparison = compared({matrix("w0", 2, 2), held}, {matrix("w0", 2, 2), expected});
    CHECK_FALSE(comparison.equal());
    CHECK(comparison.different == 1);
    CHECK(comparison.elements == 4 + rows * cols);
    says(comparison, "rank 3  dp 1, w7 row " + std::to_string(expected.first_row + at / cols) + " column " +
                         std::to_string(expected.first_col + at % cols) + "\n");
    char hex[16];
    std::snprintf(hex, sizeof hex, "0x%08x", bits);
    says(comparison, hex);
    says(comparison, "ULP apart");
  }
}

TEST_CASE("compare: values in decimal and hex, and their distance") {
  const Comparison neighbours = of_values(std::nextafter(1.0f, 2.0f), 1.0f);
  says(neighbours, "1.00000012");
  says(neighbours, "0x3f800001");
  says(neighbours, "0x3f800000");
  says(neighbours, " 1 ULP apart");

  const Comparison zeros = of_values(-0.0f, 0.0f);
  CHECK_FALSE(zeros.equal());
  says(zeros, "0x80000000");
  says(zeros, "0x00000000");
  says(zeros, "0 ULP apart");

  const Comparison nan = of_values(std::numeric_limits<float>::quiet_NaN(), 1.0f);
  CHECK_FALSE(nan.equal());
  says(nan, "nan");
  says(nan, "not a number");
  CHECK_FALSE(of_values(from_bits(0x7fc00001), from_bits(0x7fc00000)).equal());
}

TEST_CASE("compare: only the first difference is described, all are counted, over several ranks as well") {
  NamedMatrix wrong = matrix("w", 2, 3);
  wrong.matrix(0, 1) += 1;
  wrong.matrix(1, 2) += 1;
  Comparison comparison;
  compare("rank 0", {matrix("w", 2, 3)}, {matrix("w", 2, 3)}, comparison);
  CHECK(comparison.equal());
  compare("rank 1", {wrong}, {matrix("w", 2, 3)}, comparison);
  compare("rank 2", {wrong}, {matrix("w", 2, 3)}, comparison);
  CHECK(comparison.elements == 18);
  CHECK(comparison.different == 4);
  says(comparison, "rank 1, w row 0 column 1");
  CHECK(comparison.first.size() == 3);
}

TEST_CASE("compare: other shapes, names and numbers of matrices differ, also where no element does") {
  const Comparison shape = compared({matrix("w", 3, 2)}, {matrix("w", 2, 3)});
  CHECK_FALSE(shape.equal());
  CHECK(shape.different == 6);
  says(shape, "the shape of w");
  says(shape, "3 × 2");
  says(shape, "2 × 3");

  const Comparison missing = compared({}, {matrix("w", 2, 3)});
  CHECK_FALSE(missing.equal());
  CHECK(missing.different == 6);
  says(missing, "does not hold w");

  const Comparison extra = compared({matrix("w", 2, 3), matrix("v", 1, 1)}, {matrix("w", 2, 3)});
  CHECK_FALSE(extra.equal());
  says(extra, "holds v, which the reference does not know");

  CHECK_FALSE(compared({matrix("v", 2, 3)}, {matrix("w", 2, 3)}).equal());
  CHECK_FALSE(compared({matrix("w", 1, 1), matrix("v", 1, 1)}, {matrix("v", 1, 1), matrix("w", 1, 1)}).equal());
  CHECK_FALSE(compared({matrix("w", 0, 3)}, {matrix("w", 0, 4)}).equal());
  CHECK_FALSE(compared({matrix("empty", 0, 0)}, {}).equal());
  CHECK_FALSE(compared({}, {matrix("empty", 0, 0)}).equal());
}

TEST_CASE("ulp_distance: counts the floats between, across zero, and is symmetric") {
  CHECK(ulp_distance(1.0f, 1.0f) == 0);
  CHECK(ulp_distance(0.0f, -0.0f) == 0);
  CHECK(ulp_distance(from_bits(1), 0.0f) == 1);
  CHECK(ulp_distance(from_bits(1), from_bits(0x80000001)) == 2);
  CHECK(ulp_distance(1.0f, 2.0f) == 1 << 23);
  CHECK(ulp_distance(-1.0f, -2.0f) == 1 << 23);
  const float huge = std::numeric_limits<float>::max();
  CHECK(ulp_distance(huge, std::numeric_limits<float>::infinity()) == 1);
  CHECK(ulp_distance(-huge, huge) == 2LL * 0x7f7fffff);
  CHECK(ulp_distance(std::numeric_limits<float>::quiet_NaN(), 1.0f) == -1);
  CHECK(ulp_distance(1.0f, std::numeric_limits<float>::quiet_NaN()) == -1);
  std::mt19937 random(7);
  for (int i = 0; i < 1000; ++i) {
    const float a = from_bits(static_cast<std::uint32_t>(random())),
                b = from_bits(static_cast<std::uint32_t>(random()));
    CHECK(ulp_distance(a, b) == ulp_distance(b, a));
  }
}
