// The chain for any processor, in vectors that the compiler makes of what there is.
#if defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif
#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#endif

#include <cstdint>

#include "src/numerics/chain_kernel.hpp"
#include "src/numerics/fused.hpp"

namespace muonwalk {
namespace {

using Vector = float __attribute__((vector_size(16)));
using FourBits = std::uint32_t __attribute__((vector_size(16)));
#ifdef __aarch64__
constexpr int tile_rows = 14;
#else
constexpr int tile_rows = 6;
#endif
constexpr int panel_vectors = 2;
constexpr Index block_depth = 256;
constexpr Index left_words = 432 * 272;

Vector broadcast(const float* word) { return Vector{*word, *word, *word, *word}; }

// The first 0 … 4 words of a vector; the others are zeros, and their memory is not touched. Four are copied at once.
Vector load_first(const float* from, Index count) {
  Vector value = {};
  if (count == 4) {
    __builtin_memcpy(&value, from, sizeof(value));
  } else {
    for (Index i = 0; i < count; ++i) value[i] = from[i];
  }
  return value;
}
void store_first(float* to, Vector value, Index count) {
  if (count == 4) {
    __builtin_memcpy(to, &value, sizeof(value));
  } else {
    for (Index i = 0; i < count; ++i) to[i] = value[i];
  }
}

using TwoDoubles = double __attribute__((vector_size(16)));
using TwoBits = std::int64_t __attribute__((vector_size(16)));

// The numbers `first` and `first` + 1 of left · right + sum: the product exact, the sum rounded to 53 bits.
template <int first>
TwoDoubles in_double(Vector left, Vector right, Vector sum) {
  return TwoDoubles{left[first], left[first + 1]} * TwoDoubles{right[first], right[first + 1]} +
         TwoDoubles{sum[first], sum[first + 1]};
}

Vector in_float(TwoDoubles low, TwoDoubles high) {
#ifdef __wasm_simd128__
  const v128_t two = wasm_f32x4_demote_f64x2_zero(reinterpret_cast<v128_t>(low));
  const v128_t other_two = wasm_f32x4_demote_f64x2_zero(reinterpret_cast<v128_t>(high));
  return reinterpret_cast<Vector>(wasm_i32x4_shuffle(two, other_two, 0, 1, 4, 5));
#else
  return Vector{static_cast<float>(low[0]), static_cast<float>(low[1]), static_cast<float>(high[0]),
                static_cast<float>(high[1])};
#endif
}

// Whether a sum's magnitude is below this.
TwoBits below(TwoDoubles sum, double limit) {
  return reinterpret_cast<TwoDoubles>(reinterpret_cast<TwoBits>(sum) & 0x7fffffffffffffff) < limit;
}

#if defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
Vector multiply_add(Vector left, Vector right, Vector sum) { return vfmaq_f32(sum, left, right); }
#else
// Where it matters what a sum was before it was rounded to 53 bits: halfway between two floats, and where floats are
// subnormal.
TwoBits undecided(TwoDoubles sum) {
  const TwoBits last = reinterpret_cast<TwoBits>(sum) & 0x1fffffff;
  return (last == 0x10000000) | (below(sum, 0x1p-126) & (sum != 0));
}

bool any(TwoBits lanes) {
#ifdef __wasm_simd128__
  return wasm_v128_any_true(reinterpret_cast<v128_t>(lanes));
#else
  return (lanes[0] | lanes[1]) != 0;
#endif
}

// In doubles, whatever the processor can do. Not by fmaf of the C library: Emscripten's is wrong in half of those.
Vector multiply_add(Vector left, Vector right, Vector sum) {
  const TwoDoubles low = in_double<0>(left, right, sum), high = in_double<2>(left, right, sum);
  Vector result = in_float(low, high);
  if (any(undecided(low) | undecided(high)))
    for (int i = 0; i < 4; ++i) result[i] = fused_in_doubles(left[i], right[i], sum[i]);
  return result;
}
#endif

// What follows is the same where subnormal numbers count as zeros, as a bfloat16 chain has it: the reference for what
// processors do by themselves.
Vector flushed(Vector x) {
  const auto bits = reinterpret_cast<FourBits>(x);
  const auto tiny = reinterpret_cast<FourBits>(reinterpret_cast<Vector>(bits & 0x7fffffffu) < 0x1p-126f);
  return reinterpret_cast<Vector>(bits & ~(tiny & 0x7fffffffu));
}
TwoDoubles flushed(TwoDoubles exact) {
  const TwoBits bits = reinterpret_cast<TwoBits>(exact);
  return reinterpret_cast<TwoDoubles>(bits & ~(below(exact, 0x1p-126 - 0x1p-151) & 0x7fffffffffffffff));
}

// Of bfloat16, so the sum that is rounded to 53 bits is never one that is halfway between two floats: its two parts
// have 16 and 24 bits, and when they are too far apart for 53, the small one is far from half of the large one's last.
Vector multiply_add_flushed(Vector left, Vector right, Vector sum) {
  left = flushed(left), right = flushed(right);  // and so was the sum, by the step before
  return in_float(flushed(in_double<0>(left, right, sum)), flushed(in_double<2>(left, right, sum)));
}
Vector multiply_flushed(Vector left, Vector right) {
  return multiply_add_flushed(left, right, Vector{-0.0f, -0.0f, -0.0f, -0.0f});  // which changes no product
}
Vector add_flushed(Vector left, Vector right) { return flushed(flushed(left) + flushed(right)); }

#include "src/numerics/chain_kernel.inc"

}  // namespace

extern const ChainKernel chain_kernel_plain;
const ChainKernel chain_kernel_plain = {"plain",
                                        panel_cols,
                                        compute_columns<Floats>,
                                        compute_columns<Bf16Format>,
                                        compute_columns<TiledFormat>,
                                        left_words,
                                        block_depth* panel_cols};

}  // namespace muonwalk
