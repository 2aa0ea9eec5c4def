#pragma once

// Products of random shapes, options and numbers, for all that computes chains.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "src/numerics/bfloat16.hpp"
#include "src/numerics/chain_product.hpp"

namespace muonwalk {

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
  // `larger_by`: what sizes begin at.
  RandomProduct(std::uint32_t seed, Precision precision, Numbers numbers, Index larger_by = 0)
      : random(seed), least(larger_by) {
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
    static const std::vector<Index> edges = {0,  1,  2,  8,  9,  10, 13, 14, 15, 16, 17, 28,
                                             29, 31, 32, 33, 47, 48, 49, 63, 64, 65, 96, 100};
    return least + (random() % 2 ? edges[random() % edges.size()] : static_cast<Index>(1 + random() % 90));
  }
  Matrix computed(int threads, const ChainKernel& kernel) {
    Matrix out = nothing_yet();
    p.out = out.data();
    compute(p, threads, kernel);
    return out;
  }
  // What a result is before anything is written.
  Matrix nothing_yet() const {
    Matrix out(p.rows, p.cols);
    for (float& value : out.flat()) value = std::numeric_limits<float>::quiet_NaN();
    return out;
  }
  std::mt19937 random;
  Index least;
  Matrix left, right, addend;
  ChainProduct p;
};

// Every NaN as the same one: which of two NaNs an operation hands on, no order of operations says.
inline Matrix with_one_nan(Matrix x) {
  for (float& value : x.flat())
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  return x;
}

}  // namespace muonwalk
