#include "src/numerics/philox.hpp"

#ifdef __SSE2__
#include <immintrin.h>
#endif

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

// Words in the lower halves of 64-bit lanes: one of them, or a vector of them. What is in the upper halves doesn't
// count. Processors multiply such lanes in one instruction, which compilers don't find by themselves.
constexpr std::uint64_t lower_half = 0xFFFFFFFFu;
inline std::uint64_t product(std::uint64_t a, std::uint32_t b) { return (a & lower_half) * b; }
#if defined(__AVX512F__)
using Words = std::uint64_t __attribute__((vector_size(64)));
inline Words product(Words a, std::uint32_t b) {
  return Words(_mm512_maskz_mul_epu32(0xff, __m512i(a), __m512i(Words{} + b)));
}
#elif defined(__AVX2__)
using Words = std::uint64_t __attribute__((vector_size(32)));
inline Words product(Words a, std::uint32_t b) { return Words(_mm256_mul_epu32(__m256i(a), __m256i(Words{} + b))); }
#elif defined(__SSE2__)
using Words = std::uint64_t __attribute__((vector_size(16)));
inline Words product(Words a, std::uint32_t b) { return Words(_mm_mul_epu32(__m128i(a), __m128i(Words{} + b))); }
#else
using Words = std::uint64_t __attribute__((vector_size(16)));
inline Words product(Words a, std::uint32_t b) { return (a & lower_half) * b; }
#endif
using Doubles = double __attribute__((vector_size(sizeof(Words))));
constexpr int width = sizeof(Words) / sizeof(std::uint64_t);

template <class Word>
struct Block {
  Word c0, c1, c2, c3;

  // Exact: four words are below 2³⁴.
  Word sum() const { return (c0 & lower_half) + (c1 & lower_half) + (c2 & lower_half) + (c3 & lower_half); }
};

template <class Word>
Block<Word> ten_rounds(Block<Word> c, std::uint32_t k0, std::uint32_t k1) {
  for (int round = 0; round < 10; ++round) {
    const Word product_0 = product(c.c0, multiplier_0), product_1 = product(c.c2, multiplier_1);
    c = {(product_1 >> 32) ^ c.c1 ^ k0, product_1, (product_0 >> 32) ^ c.c3 ^ k1, product_0};
    k0 += weyl_0;
    k1 += weyl_1;
  }
  return c;
}

// The counter is (element, tensor), the key is the seed.
template <class Word>
Block<Word> words_of(RandomTensor key, Word element) {
  return ten_rounds(Block<Word>{element, element >> 32, Word{} + low(key.tensor), Word{} + high(key.tensor)},
                    low(key.seed), high(key.seed));
}

// Each word / 2³² is uniform in [0, 1), with mean 1/2 and variance 1/12; four of them have mean 2 and variance 1/3.
// Sums of four are exact in a double, and so they are without their mean: all rounding happens in one product and one
// conversion. A number below 2⁵² is made a double by its bits: those are the last bits of 2⁵² and that number.
constexpr double scale = 1.7320508075688772 / 4294967296.0;  // √3 / 2³²
constexpr double mean = 8589934592.0, two_52 = 4503599627370496.0;
constexpr std::uint64_t bits_of_two_52 = 0x4330000000000000u;

}  // namespace

std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  const auto words = ten_rounds(Block<std::uint64_t>{counter[0], counter[1], counter[2], counter[3]}, key[0], key[1]);
  return {low(words.c0), low(words.c1), low(words.c2), low(words.c3)};
}

float random_value(RandomTensor key, std::uint64_t element) {
  return static_cast<float>((static_cast<double>(words_of(key, element).sum()) - mean) * scale);
}

void random_values(RandomTensor key, std::uint64_t first, Index count, float* out) {
  Index i = 0;
  for (; i + width <= count; i += width) {
    Words elements;
    for (int lane = 0; lane < width; ++lane) elements[lane] = first + static_cast<std::uint64_t>(i + lane);
    const Doubles values = (Doubles(words_of(key, elements).sum() | bits_of_two_52) - (two_52 + mean)) * scale;
    for (int lane = 0; lane < width; ++lane) out[i + lane] = static_cast<float>(values[lane]);
  }
  for (; i < count; ++i) out[i] = random_value(key, first + static_cast<std::uint64_t>(i));
}

Matrix random_matrix(RandomTensor key, Index rows, Index cols) {
  Matrix result(rows, cols);
  random_values(key, 0, result.size(), result.data());
  return result;
}

}  // namespace muonwalk
