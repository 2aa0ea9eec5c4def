#include "src/numerics/philox.hpp"

namespace muonwalk {

namespace {

// The constants of the paper: two multipliers chosen for their avalanche, and the Weyl sequence that changes the key
// from round to round (the golden ratio and √3 − 1 as 32-bit fractions).
constexpr std::uint32_t multiplier_0 = 0xD2511F53u;
constexpr std::uint32_t multiplier_1 = 0xCD9E8D57u;
constexpr std::uint32_t weyl_0 = 0x9E3779B9u;
constexpr std::uint32_t weyl_1 = 0xBB67AE85u;

constexpr std::uint32_t low(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
constexpr std::uint32_t high(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

struct Block {
  std::uint32_t c0, c1, c2, c3;
};

inline Block one_round(Block c, std::uint32_t k0, std::uint32_t k1) {
  const std::uint64_t product_0 = std::uint64_t{multiplier_0} * c.c0;
  const std::uint64_t product_1 = std::uint64_t{multiplier_1} * c.c2;
  return {high(product_1) ^ c.c1 ^ k0, low(product_1), high(product_0) ^ c.c3 ^ k1, low(product_0)};
}

inline Block ten_rounds(Block c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    c = one_round(c, k0, k1);
    k0 += weyl_0;
    k1 += weyl_1;
  }
  return c;
}

// Each word / 2³² is uniform in [0, 1), with mean 1/2 and variance 1/12; four of them have mean 2 and variance 1/3.
// With its first bit flipped, a word is a number with a sign, less by 2³¹: that takes the mean off. Sums of such
// numbers are exact in a double, so that all rounding there is happens in one product and one conversion.
inline float value_of(std::uint32_t w0, std::uint32_t w1, std::uint32_t w2, std::uint32_t w3) {
  constexpr double scale = 1.7320508075688772 / 4294967296.0;  // √3 / 2³²
  const auto centred = [](std::uint32_t word) {
    return static_cast<double>(static_cast<std::int32_t>(word ^ 0x80000000u));
  };
  return static_cast<float>(((centred(w0) + centred(w1)) + (centred(w2) + centred(w3))) * scale);
}

// So many elements go through the ten rounds side by side: independent of each other, they fill vectors.
constexpr int lanes = 16;
using Lanes = std::uint32_t[lanes];

// The values of `lanes` elements from `first` on. The counter is (element, tensor), the key is the seed.
void values_of_lanes(RandomTensor key, std::uint64_t first, float* out) {
  Lanes c0, c1, c2, c3;
  for (int i = 0; i < lanes; ++i) {
    const std::uint64_t element = first + static_cast<std::uint64_t>(i);
    c0[i] = low(element);
    c1[i] = high(element);
    c2[i] = low(key.tensor);
    c3[i] = high(key.tensor);
  }
  std::uint32_t k0 = low(key.seed), k1 = high(key.seed);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < lanes; ++i) {
      const Block next = one_round({c0[i], c1[i], c2[i], c3[i]}, k0, k1);
      c0[i] = next.c0;
      c1[i] = next.c1;
      c2[i] = next.c2;
      c3[i] = next.c3;
    }
    k0 += weyl_0;
    k1 += weyl_1;
  }
  for (int i = 0; i < lanes; ++i) out[i] = value_of(c0[i], c1[i], c2[i], c3[i]);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  const Block words = ten_rounds({counter[0], counter[1], counter[2], counter[3]}, key[0], key[1]);
  return {words.c0, words.c1, words.c2, words.c3};
}

float random_value(RandomTensor key, std::uint64_t element) {
  const Block words =
      ten_rounds({low(element), high(element), low(key.tensor), high(key.tensor)}, low(key.seed), high(key.seed));
  return value_of(words.c0, words.c1, words.c2, words.c3);
}

void random_values(RandomTensor key, std::uint64_t first, Index count, float* out) {
  Index i = 0;
  for (; i + lanes <= count; i += lanes) values_of_lanes(key, first + static_cast<std::uint64_t>(i), out + i);
  for (; i < count; ++i) out[i] = random_value(key, first + static_cast<std::uint64_t>(i));
}

Matrix random_matrix(RandomTensor key, Index rows, Index cols) {
  Matrix result(rows, cols);
  random_values(key, 0, result.size(), result.data());
  return result;
}

}  // namespace muonwalk
