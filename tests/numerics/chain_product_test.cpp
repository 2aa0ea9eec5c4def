#include "src/numerics/chain_product.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/philox.hpp"
#include "tests/cases.hpp"
#include "tests/numerics/random_product.hpp"

using namespace muonwalk;

namespace {

// --- the definitions, in plain loops
// ----------------------------------------------------------------------------------

float fp32_chain(const ChainProduct& p, Index i, Index j) {
  float sum = p.addend ? p.addend_scale * p.addend[i * p.cols + j] : 0.0f;
  for (Index k = 0; k < p.depth; ++k) {
    const float right = p.right_transposed ? p.right[j * p.depth + k] : p.right[k * p.cols + j];
    sum = std::fma(p.left_scale * p.left[i * p.depth + k], right, sum);
  }
  return sum;
}

const float smallest_normal = std::numeric_limits<float>::min();

float flushed(float x) { return std::fabs(x) < smallest_normal ? std::copysign(0.0f, x) : x; }

// A result that is `rounded` in float32, and `exact` in the digits that matter just below the smallest normal number.
// It is flushed if it would be below that number with 24 bits of its own: if it lies below the middle between the
// number and the one before it that a float of unlimited exponent has.
float flushed_result(double exact, float rounded) {
  return std::fabs(exact) < std::ldexp(1.0, -126) - std::ldexp(1.0, -151) ? std::copysign(0.0f, rounded) : rounded;
}

float flushed_fma(float x, float y, float z) {
  x = flushed(x), y = flushed(y), z = flushed(z);
  const double exact = static_cast<double>(x) * y + z;
  return flushed_result(exact, std::fma(x, y, z));
}

// What becomes of a sum of bf16.
float ended(const ChainProduct& p, Index i, Index j, float sum) {
  const float rounded = nearest_bf16(sum);
  if (!p.addend) return rounded;
  const float addend = flushed(p.addend[i * p.cols + j]);
  const float scaled =
      nearest_bf16(flushed_result(static_cast<double>(p.addend_scale) * addend, p.addend_scale * addend));
  return nearest_bf16(flushed(flushed(scaled) + flushed(rounded)));
}

float bf16_chain(const ChainProduct& p, Index i, Index j) {
  const auto left = [&](Index k) { return k < p.depth ? p.left[i * p.depth + k] : 0.0f; };
  const auto right = [&](Index k) {
    return k >= p.depth ? 0.0f : p.right_transposed ? p.right[j * p.depth + k] : p.right[k * p.cols + j];
  };
  float sum = 0;
  for (Index k = 0; k < p.depth; k += 2) {
    sum = flushed_fma(left(k + 1), right(k + 1), sum);
    sum = flushed_fma(left(k), right(k), sum);
  }
  return ended(p, i, j, sum);
}

float bf16_tiles(const ChainProduct& p, Index i, Index j) {
  const auto step = [&](Index k, float& sum) {
    const float left = k < p.depth ? p.left[i * p.depth + k] : 0.0f;
    const float right = k >= p.depth ? 0.0f : p.right_transposed ? p.right[j * p.depth + k] : p.right[k * p.cols + j];
    sum = flushed_fma(left, right, sum);
  };
  float sum = 0;
  for (Index begin = 0; begin < p.depth; begin += 32) {
    float even = 0, odd = 0;
    for (Index k = begin; k < begin + 32; k += 2) step(k, even), step(k + 1, odd);
    sum = flushed(sum + flushed(even + odd));
  }
  return ended(p, i, j, sum);
}

Matrix plain_loops(const ChainProduct& p) {
  Matrix out(p.rows, p.cols);
  for (Index i = 0; i < p.rows; ++i)
    for (Index j = 0; j < p.cols; ++j) {
      const Index row = p.symmetric ? std::max(i, j) : i, col = p.symmetric ? std::min(i, j) : j;
      out(i, j) = (p.precision == Precision::fp32 ? fp32_chain : p.in_tiles ? bf16_tiles : bf16_chain)(p, row, col);
    }
  return out;
}

void compare_all(Precision precision, Numbers numbers, std::uint32_t seeds, bool in_tiles = false) {
  for (std::uint32_t seed = 0; seed < testing::cases(seeds); ++seed) {
    RandomProduct product(seed, precision, numbers);
    product.p.in_tiles = in_tiles;
    const Matrix expected = with_one_nan(plain_loops(product.p));
    for (const ChainKernel* kernel : chain_kernels()) {
      for (int threads : {1, 2, 3, 7}) {
        CAPTURE(seed);
        CAPTURE(shape_text(product.p.rows, product.p.cols));
        CAPTURE(product.p.depth);
        CAPTURE(std::string(kernel->name));
        CAPTURE(threads);
        REQUIRE(same_bits(with_one_nan(product.computed(threads, *kernel)), expected));
      }
    }
  }
}

}  // namespace

TEST_CASE("chain: fp32, any shape, options, threads, and the code for any processor: the plain loops, bit for bit") {
  compare_all(Precision::fp32, Numbers::ordinary, 120);
}

TEST_CASE("chain: bf16, any shape, options, threads, and the code for any processor: the plain loops, bit for bit") {
  compare_all(Precision::bf16, Numbers::ordinary, 120);
}

TEST_CASE("chain: bf16, zeros, subnormals and infinities: what vdpbf16ps does, the code for all processors does") {
  compare_all(Precision::bf16, Numbers::special, 240);
}

TEST_CASE("tiles: any shape, options, threads, and the code for any processor: the plain loops, bit for bit") {
  compare_all(Precision::bf16, Numbers::ordinary, 120, true);
}

TEST_CASE("tiles: zeros, subnormals and infinities: what tdpbf16ps does, the code for all processors does") {
  compare_all(Precision::bf16, Numbers::special, 240, true);
}

TEST_CASE("chain: fp32, zeros, subnormals and infinities: nothing is flushed") {
  compare_all(Precision::fp32, Numbers::special, 60);
}

// One step of a chain each: products that are a little more or less than a power of two, and sums about as far above
// it as a float is long, so that the exact result is next to halfway between two floats, or is a subnormal one.
TEST_CASE("chain: fp32, halfway but for a bit far behind, and subnormal: rounded once, by every kernel") {
  std::mt19937 random(26);
  std::int64_t hard = 0;
  for (int round = 0; round < 40; ++round) {
    const int middle = round % 2 == 0 ? static_cast<int>(random() % 100) - 50 : -150;
    const auto near_one = [&] {
      const float last_bits = static_cast<float>(static_cast<int>(random() % 7) - 3);
      return std::ldexp(1 + std::ldexp(last_bits, -23), random() % 2 == 0 ? middle / 2 : middle - middle / 2);
    };
    Matrix left(100, 1), right(1, 100), addend(100, 100);
    for (float& value : left.flat()) value = near_one();
    for (float& value : right.flat()) value = near_one();
    for (float& value : addend.flat()) {
      const float fraction = static_cast<float>(random() >> 8) * (random() % 2 == 0 ? 1.0f : -1.0f);
      value = std::ldexp(fraction, middle + static_cast<int>(random() % 2));
    }
    ChainProduct p;
    p.rows = p.cols = 100, p.depth = 1;
    p.left = left.data(), p.right = right.data(), p.addend = addend.data();
    const Matrix expected = plain_loops(p);
    for (Index i = 0; i < p.rows; ++i)
      for (Index j = 0; j < p.cols; ++j)
        hard += static_cast<float>(static_cast<double>(left(i, 0)) * right(0, j) + addend(i, j)) != expected(i, j);
    for (const ChainKernel* kernel : chain_kernels()) {
      CAPTURE(std::string(kernel->name));
      CAPTURE(round);
      Matrix out(p.rows, p.cols);
      p.out = out.data();
      compute(p, 1, *kernel);
      REQUIRE(same_bits(out, expected));
    }
  }
  CHECK(hard > 10000);  // of 400,000; rounded twice, they differ
}

TEST_CASE(
    "chain: more rows than a kernel keeps near at once, in blocks that end anywhere: the plain loops, bit for bit") {
  for (const auto& [precision, in_tiles] :
       {std::pair(Precision::fp32, false), std::pair(Precision::bf16, false), std::pair(Precision::bf16, true)}) {
    Matrix x = random_matrix({1, 1}, 1500, 3);
    if (precision == Precision::bf16) round_to_bf16(x.data(), x.size());
    ChainProduct p;
    p.rows = p.cols = x.rows();
    p.depth = x.cols();
    p.left = p.right = x.data();
    p.right_transposed = p.symmetric = true;
    p.precision = precision;
    p.in_tiles = in_tiles;
    const Matrix expected = plain_loops(p);
    for (const ChainKernel* kernel : chain_kernels()) {
      CAPTURE(std::string(kernel->name));
      Matrix out(p.rows, p.cols);
      p.out = out.data();
      compute(p, 2, *kernel);
      REQUIRE(same_bits(out, expected));
    }
  }
}

TEST_CASE("chain: bf16 takes the second of a pair first, and fills up an odd depth with a zero") {
  // In the order of k the two numbers of 2²⁴ swallow both ones, 1 + 2²⁴ + 1 − 2²⁴ = 0; in this one the last is left.
  const Matrix left(1, 4, Flat{1, 16777216, 1, -16777216});
  const Matrix negative_zero(1, 1, Flat{-0.0f});
  const Matrix ones(4, 1, Flat{1, 1, 1, 1});
  Matrix out(1, 1);
  ChainProduct p;
  p.rows = p.cols = 1;
  p.precision = Precision::bf16;
  p.right = ones.data();
  p.out = out.data();
  for (const ChainKernel* kernel : chain_kernels()) {
    CAPTURE(std::string(kernel->name));
    p.left = left.data();
    p.depth = 4;
    compute(p, 1, *kernel);
    CHECK(out(0, 0) == 1);
    // A chain of one negative zero: the zero that fills it up is positive, and so is their sum.
    p.left = negative_zero.data();
    p.depth = 1;
    compute(p, 1, *kernel);
    CHECK(float_bits(out(0, 0)) == 0);
  }
}

TEST_CASE(
    "chain: bf16 flushes what is below 2⁻¹²⁶ after rounding to 24 bits, not before and not by the float it becomes") {
  // 2⁻¹²⁶ less a little more than 2⁻¹⁵¹ is nearer to 2⁻¹²⁶ − 2⁻¹⁵⁰, so it is zero, though the nearest float is 2⁻¹²⁶;
  // less a little less than 2⁻¹⁵¹ it is nearer to 2⁻¹²⁶ itself, and stays.
  for (const bool stays : {false, true}) {
    const Matrix left(1, 2, Flat{std::ldexp(stays ? 0.9921875f : 1.0078125f, -75), std::ldexp(1.0f, -63)});
    const Matrix right(2, 1, Flat{-std::ldexp(1.0f, -76), std::ldexp(1.0f, -63)});
    Matrix out(1, 1);
    ChainProduct p;
    p.rows = p.cols = 1;
    p.depth = 2;
    p.precision = Precision::bf16;
    p.left = left.data();
    p.right = right.data();
    p.out = out.data();
    CHECK(bf16_chain(p, 0, 0) == (stays ? smallest_normal : 0.0f));
    for (const ChainKernel* kernel : chain_kernels()) {
      CAPTURE(std::string(kernel->name));
      compute(p, 1, *kernel);
      CHECK(out(0, 0) == (stays ? smallest_normal : 0.0f));
    }
  }
}

TEST_CASE("tiles: the zeros that fill up the depth are steps: they turn what was flushed to −0 into 0") {
  // The second block leaves −2⁻¹²⁸, flushed to −0; the third two products that are flushed to −0 as well.
  Matrix left(1, 66), right(66, 1);
  const auto set = [&](Index k, float l, float r) { left(0, k) = l, right(k, 0) = r; };
  set(0, std::ldexp(1.5f, -63), std::ldexp(1.0f, -63));
  set(32, std::ldexp(-1.75f, -63), std::ldexp(1.0f, -63));
  for (const Index k : {64, 65}) set(k, std::ldexp(-1.0f, -100), std::ldexp(1.0f, -100));
  Matrix out(1, 1);
  ChainProduct p;
  p.rows = p.cols = 1;
  p.precision = Precision::bf16;
  p.in_tiles = true;
  p.left = left.data(), p.right = right.data(), p.out = out.data();
  for (const Index depth : {Index{64}, Index{66}}) {
    p.depth = depth;
    const float expected = depth == 64 ? -0.0f : 0.0f;
    CHECK(float_bits(bf16_tiles(p, 0, 0)) == float_bits(expected));
    for (const ChainKernel* kernel : chain_kernels()) {
      CAPTURE(std::string(kernel->name));
      compute(p, 1, *kernel);
      CHECK(float_bits(out(0, 0)) == float_bits(expected));
    }
  }
}

TEST_CASE("chain: this thread's arithmetic keeps its subnormal numbers after a product in bf16") {
  RandomProduct product(4, Precision::bf16, Numbers::ordinary);
  volatile float tiny = smallest_normal;
  for (const bool in_tiles : {false, true})
    for (const ChainKernel* kernel : chain_kernels()) {
      product.p.in_tiles = in_tiles;
      product.computed(1, *kernel);
      CHECK(tiny / 2 > 0);
    }
}

TEST_CASE("chain: bf16 refuses a left factor that is to be transposed, and writes nothing") {
  const Matrix left(3, 2, {1, 2, 3, 4, 5, 6}), right(3, 2, {1, 1, 1, 1, 1, 1});
  Matrix out(2, 2);
  ChainProduct p;
  p.rows = p.cols = 2;
  p.depth = 3;
  p.left = left.data();
  p.left_transposed = true;
  p.right = right.data();
  p.out = out.data();
  for (const int threads : {1, 2})
    for (const ChainKernel* kernel : chain_kernels()) {
      CAPTURE(std::string(kernel->name));
      p.precision = Precision::bf16;
      CHECK_THROWS_WITH_AS(compute(p, threads, *kernel),
                           "a product in bf16 takes its left factor as it is; transpose it first",
                           std::invalid_argument);
      CHECK(same_bits(out, Matrix(2, 2)));
      p.precision = Precision::fp32;
      compute(p, threads, *kernel);
      CHECK(same_bits(out, Matrix(2, 2, {9, 9, 12, 12})));
      std::fill(out.flat().begin(), out.flat().end(), 0.0f);
    }
}
