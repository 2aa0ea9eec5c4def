// Products of parts of larger matrices by every kernel: factors, sums and results whose rows lie apart, either factor
// transposed, scaled, and with what is added to them.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/chain_product.hpp"
#include "src/numerics/products.hpp"
#include "tests/numerics/random_product.hpp"
#include "tests/sentence_of.hpp"

using namespace muonwalk;

namespace {

// A matrix of which the columns behind `cols` are NaNs, which nobody may touch.
Matrix with_columns_behind(std::mt19937& random, Index rows, Index cols, bool bf16) {
  Matrix x(rows, cols + static_cast<Index>(random() % 7));
  RandomNumbers number = {random, Numbers::ordinary};
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.cols(); ++j)
      x(i, j) = j >= cols ? std::numeric_limits<float>::quiet_NaN() : bf16 ? nearest_bf16(number()) : number();
  return x;
}

struct PartsCase {
  explicit PartsCase(std::uint32_t seed) : random(seed) {
    const bool bf16 = seed % 3 == 2;
    const auto size = [&] { return static_cast<Index>(1 + random() % (random() % 3 == 0 ? 120 : 30)); };
    p.precision = bf16 ? Precision::bf16 : Precision::fp32;
    p.rows = size(), p.cols = size(), p.depth = size() + (seed % 5 == 0 ? 700 : 0);
    p.left_transposed = !bf16 && random() % 2 == 0;
    p.right_transposed = random() % 2 == 0;
    if (!bf16 && random() % 2 == 0) p.left_scale = -0.37f;
    left = p.left_transposed ? with_columns_behind(random, p.depth, p.rows, bf16)
                             : with_columns_behind(random, p.rows, p.depth, bf16);
    right = p.right_transposed ? with_columns_behind(random, p.cols, p.depth, bf16)
                               : with_columns_behind(random, p.depth, p.cols, bf16);
    before = with_columns_behind(random, p.rows, p.cols, bf16);
    addend = Matrix(before.rows(), before.cols());
    for (Index i = 0; i < p.rows; ++i)
      for (Index j = 0; j < p.cols; ++j) addend(i, j) = before(i, j) / 2;
    way = static_cast<int>(random() % 3);
    p.addend_scale = way == 0 ? 1 : 3.25f;
    p.left = left.data(), p.left_row = left.cols();
    p.right = right.data(), p.right_row = right.cols();
    p.out_row = before.cols();
  }

  // What is added to element (i, j), if anything is: a matrix of its own, or what lies in the result.
  float added(Index i, Index j) const { return p.addend_scale * (way == 1 ? addend(i, j) : before(i, j)); }

  float expected(Index i, Index j) const {
    const auto l = [&](Index k) {
      return k >= p.depth ? 0 : p.left_scale * (p.left_transposed ? left(k, i) : left(i, k));
    };
    const auto r = [&](Index k) { return k >= p.depth ? 0 : p.right_transposed ? right(j, k) : right(k, j); };
    const bool adds = way != 0;
    if (p.precision == Precision::fp32) {
      float sum = adds ? added(i, j) : 0;
      for (Index k = 0; k < p.depth; ++k) sum = std::fma(l(k), r(k), sum);
      return sum;
    }
    float sum = 0;
    for (Index k = 0; k < p.depth; k += 2) sum = std::fma(l(k), r(k), std::fma(l(k + 1), r(k + 1), sum));
    return adds ? nearest_bf16(nearest_bf16(added(i, j)) + nearest_bf16(sum)) : nearest_bf16(sum);
  }

  std::mt19937 random;
  Matrix left, right, before, addend;
  int way = 0;  // 0: nothing is added; 1: a matrix of its own; 2: what lies in the result, in fp32
  ChainProduct p;
};

}  // namespace

TEST_CASE("chain: rows that lie apart, any factor transposed and scaled, any addend, any kernel: the plain loops") {
  int of_way[3] = {}, scaled_transposed = 0;
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    CAPTURE(seed);
    PartsCase c(seed);
    if (c.way == 2 && c.p.precision == Precision::bf16) c.way = 1;
    ++of_way[c.way];
    scaled_transposed += c.p.left_transposed && c.p.left_scale != 1;
    Matrix expected = c.before;
    for (Index i = 0; i < c.p.rows; ++i)
      for (Index j = 0; j < c.p.cols; ++j) expected(i, j) = c.expected(i, j);
    for (const ChainKernel* kernel : chain_kernels())
      for (const int threads : {1, 3}) {
        CAPTURE(std::string(kernel->name));
        CAPTURE(threads);
        Matrix out = c.before;
        c.p.out = out.data();
        c.p.addend = c.way == 0 ? nullptr : c.way == 1 ? c.addend.data() : out.data();
        compute(c.p, threads, *kernel);
        REQUIRE(same_bits(out, expected));
      }
  }
  for (const int times : of_way) CHECK(times > 20);
  CHECK(scaled_transposed > 10);
}

TEST_CASE("chain_kernels: all that this processor can run, each once, the plain one first and the chosen one last") {
  std::vector<std::string> names;
  for (const ChainKernel* kernel : chain_kernels()) names.push_back(kernel->name);
  std::vector<std::string> expected = {"plain"};
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) expected.push_back("avx2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    expected.push_back("avx512");
    // Pairs of bfloat16 are slow on Intel's processors, and fast on AMD's.
    if (__builtin_cpu_supports("avx512bf16"))
      expected.insert(expected.end() - (__builtin_cpu_is("amd") ? 0 : 1), "avx512_bf16");
    std::ifstream cpus("/proc/cpuinfo");
    const std::string flags(std::istreambuf_iterator<char>(cpus), {});
    if (flags.find(" amx_bf16") != std::string::npos) expected.push_back("amx");
  }
#endif
  REQUIRE(names.size() == expected.size());
  for (std::size_t i = 0; i < names.size(); ++i) CHECK(names[i] == expected[i]);
  if (std::getenv("MUONWALK_CHAIN") == nullptr) CHECK(&chain_kernel() == chain_kernels().back());
}

TEST_CASE("part_of: rows and columns from the middle, to look at and to write to") {
  Matrix x(4, 6);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i);
  const Matrix& to_look_at = x;
  const ConstMatrixView seen = part_of(to_look_at, 1, 2, 3, 2);
  const MatrixView part = part_of(x, 2, 2, 1, 4);
  CHECK(seen.data == x.data() + 9);
  CHECK(seen.rows == 2);
  CHECK(seen.cols == 2);
  CHECK(seen.row == 6);
  CHECK(part.data == x.data() + 13);
  CHECK(part.rows == 2);
  CHECK(part.cols == 4);
  CHECK(part.row == 6);
  const ConstMatrixView again = part;
  CHECK(again.data == part.data);
  CHECK(again.rows == 2);
  CHECK(again.cols == 4);
  CHECK(again.row == 6);
  const ConstMatrixView turned = transposed(part), back = transposed(turned);
  CHECK(turned.data == part.data);
  CHECK(turned.rows == 4);
  CHECK(turned.cols == 2);
  CHECK(back.rows == 2);
  CHECK_FALSE(back.transposed);
  // The lower right corner is the product of two other corners; nothing else is written.
  const Matrix before = x;
  chain_product(part_of(to_look_at, 0, 2, 0, 3), part_of(to_look_at, 0, 3, 4, 2), part_of(x, 2, 2, 4, 2));
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 6; ++j) {
      float expected = before(i, j);
      if (i >= 2 && j >= 4) {
        expected = 0;
        for (Index k = 0; k < 3; ++k) expected += before(i - 2, k) * before(k, j);
      }
      CHECK(x(i, j) == expected);
    }
}

TEST_CASE(
    "products: each size that does not fit is refused by itself, in whichever factor, and named as it was given") {
  Matrix out(2, 5);
  const Matrix a(2, 3), b(3, 5), at = a.transposed(), bt = b.transposed();
  for (const auto& [rows, inner, cols] : {std::array<Index, 3>{1, 3, 5}, {3, 3, 5}, {2, 3, 4}, {2, 3, 6}}) {
    const Matrix l(rows, inner), r(inner, cols), lt = l.transposed(), rt = r.transposed();
    CHECK(sentence_of([&] { chain_product(l, r, out); }) ==
          "no product of " + shape_text(rows, 3) + " and " + shape_text(3, cols) + " is 2 × 5");
    CHECK(sentence_of([&] { chain_product(l, transposed(rt), out); }) ==
          "no product of " + shape_text(rows, 3) + " and " + shape_text(cols, 3) + ", transposed, is 2 × 5");
    CHECK(sentence_of([&] { chain_product(transposed(lt), r, out); }) ==
          "no product of " + shape_text(3, rows) + ", transposed, and " + shape_text(3, cols) + " is 2 × 5");
  }
  for (const Index inner : {2, 4}) {
    const Matrix r(inner, 5), rt = r.transposed();
    CHECK(sentence_of([&] { chain_product(a, r, out); }) ==
          "no product of 2 × 3 and " + shape_text(inner, 5) + " is 2 × 5");
    CHECK(sentence_of([&] { chain_product(a, transposed(rt), out); }) ==
          "no product of 2 × 3 and " + shape_text(5, inner) + ", transposed, is 2 × 5");
    CHECK(sentence_of([&] { chain_product(transposed(at), r, out); }) ==
          "no product of 3 × 2, transposed, and " + shape_text(inner, 5) + " is 2 × 5");
  }
  CHECK(sentence_of([&] { chain_product(a, b, out); }) == "");
  CHECK(same_bits(chain_product(a, b), out));
  CHECK(sentence_of([&] { chain_product(a, transposed(bt), out); }) == "");
  CHECK(sentence_of([&] { chain_product(transposed(at), b, out); }) == "");
}
