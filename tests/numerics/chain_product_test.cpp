#include "src/numerics/chain_product.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "src/numerics/bf16_rounding.hpp"
#include "src/numerics/philox.hpp"

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
  const float rounded = nearest_bf16(sum);
  if (!p.addend) return rounded;
  const float addend = flushed(p.addend[i * p.cols + j]);
  const float scaled =
      nearest_bf16(flushed_result(static_cast<double>(p.addend_scale) * addend, p.addend_scale * addend));
  return nearest_bf16(flushed(flushed(scaled) + flushed(rounded)));
}

Matrix plain_loops(const ChainProduct& p) {
  Matrix out(p.rows, p.cols);
  for (Index i = 0; i < p.rows; ++i)
    for (Index j = 0; j < p.cols; ++j) {
      const Index row = p.symmetric ? std::max(i, j) : i, col = p.symmetric ? std::min(i, j) : j;
      out(i, j) = (p.precision == Precision::bf16 ? bf16_chain : fp32_chain)(p, row, col);
    }
  return out;
}

// --- random products
// --------------------------------------------------------------------------------------------------

enum class Numbers { ordinary, special };

struct RandomNumbers {
  float operator()() { return numbers == Numbers::special ? special() : ordinary(); }
  float ordinary() { return static_cast<float>(static_cast<int>(random() % 20001) - 10000) / 10000.0f; }
  // Zeros, subnormals, infinities, and numbers whose products and sums lie about the smallest and the largest floats.
  float special() {
    const std::uint32_t bits = random(), sign = bits & 0x80000000u, fraction = bits & 0x007fffffu;
    const std::uint32_t range = random() % 8;
    const auto with_exponent = [&](std::uint32_t exponent) {
      return float_from_bits(sign | exponent << 23 | fraction);
    };
    if (range == 0) return float_from_bits(sign);
    if (range == 1) return float_from_bits(sign | fraction);
    if (range == 2) return with_exponent(1);
    if (range == 3 && random() % 50 == 0) return float_from_bits(sign | 0x7f800000u);
    if (range <= 5) return with_exponent(60 + random() % 8);
    return with_exponent(range == 6 ? 1 + random() % 254 : 120 + random() % 10);
  }
  std::mt19937& random;
  Numbers numbers;
};

// A product of random shape and options, and the memory that it lies in.
struct RandomProduct {
  RandomProduct(std::uint32_t seed, Precision precision, Numbers numbers) : random(seed) {
    const bool symmetric = seed % 3 == 0;
    p.rows = size();
    // Every fourth case runs over several blocks of depth: the addend may enter only once.
    p.depth = size() + (seed % 4 == 0 ? 1100 : 0);
    p.cols = symmetric ? p.rows : size();
    p.symmetric = symmetric;
    p.precision = precision;
    p.right_transposed = random() % 2 == 0;
    p.addend_scale = 3.4445f;
    const bool bf16 = precision == Precision::bf16;
    if (!bf16 && seed % 2 == 0) p.left_scale = -0.37f;
    RandomNumbers number = {random, numbers};
    const auto fill = [&](Index rows, Index cols) {
      Matrix x(rows, cols);
      for (float& value : x.flat()) value = bf16 ? nearest_bf16(number()) : number();
      return x;
    };
    left = fill(p.rows, p.depth);
    right = symmetric ? left.transposed() : fill(p.depth, p.cols);
    if (p.right_transposed) right = right.transposed();
    addend = fill(p.rows, p.cols);
    for (Index i = 0; symmetric && i < p.rows; ++i)
      for (Index j = 0; j < i; ++j) addend(j, i) = addend(i, j);
    p.left = left.data();
    p.right = right.data();
    if (seed % 7 != 0) p.addend = addend.data();
  }
  // Small sizes, and sizes around the edges of vectors, tiles, panels and blocks.
  Index size() {
    static const std::vector<Index> edges = {0, 1, 2, 13, 14, 15, 16, 17, 28, 29, 31, 32, 33, 48, 63, 64, 65, 100};
    return random() % 2 ? edges[random() % edges.size()] : static_cast<Index>(1 + random() % 90);
  }
  Matrix computed(int threads, const ChainKernel& kernel) {
    Matrix out(p.rows, p.cols);
    for (float& value : out.flat()) value = std::numeric_limits<float>::quiet_NaN();
    p.out = out.data();
    compute(p, threads, kernel);
    return out;
  }
  std::mt19937 random;
  Matrix left, right, addend;
  ChainProduct p;
};

// Every NaN as the same one: which of two NaNs an operation hands on, no order of operations says.
Matrix with_one_nan(Matrix x) {
  for (float& value : x.flat())
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  return x;
}

void compare_all(Precision precision, Numbers numbers, std::uint32_t seeds) {
  for (std::uint32_t seed = 0; seed < seeds; ++seed) {
    RandomProduct product(seed, precision, numbers);
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

TEST_CASE("chain: fp32, zeros, subnormals and infinities: nothing is flushed") {
  compare_all(Precision::fp32, Numbers::special, 60);
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

TEST_CASE("chain: the factors may lie at any address, aligned or not") {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    RandomProduct product(5, precision, Numbers::ordinary);
    ChainProduct& p = product.p;
    const Matrix expected = plain_loops(p);
    std::vector<float> memory(static_cast<std::size_t>(product.left.size() + product.right.size() + expected.size()) +
                              64);
    for (Index shift = 0; shift < 17; ++shift) {
      float* const left = memory.data() + shift;
      float* const right = left + product.left.size();
      std::copy_n(product.left.data(), product.left.size(), left);
      std::copy_n(product.right.data(), product.right.size(), right);
      p.left = left;
      p.right = right;
      p.out = right + product.right.size();
      for (const ChainKernel* kernel : chain_kernels()) {
        compute(p, 1, *kernel);
        REQUIRE(same_bits(Matrix(p.rows, p.cols, Flat(p.out, p.out + expected.size())), expected));
      }
    }
  }
}

TEST_CASE("chain: this thread's arithmetic keeps its subnormal numbers after a product in bf16") {
  RandomProduct product(4, Precision::bf16, Numbers::ordinary);
  volatile float tiny = smallest_normal;
  for (const ChainKernel* kernel : chain_kernels()) {
    product.computed(1, *kernel);
    CHECK(tiny / 2 > 0);
  }
}
