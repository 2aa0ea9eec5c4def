// The chain for any processor, in vectors that the compiler makes of what there is.
#if defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif

#include <cmath>
#include <utility>

#include "src/numerics/chain_kernel.hpp"

namespace muonwalk {
namespace {

using Vector = float __attribute__((vector_size(16)));
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

// Fused, if need be in the C library, which is slow.
Vector multiply_add(Vector left, Vector right, Vector sum) {
#if defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
  return vfmaq_f32(sum, left, right);
#else
  Vector result;
  for (int i = 0; i < 4; ++i) result[i] = __builtin_fmaf(left[i], right[i], sum[i]);
  return result;
#endif
}

// The same where subnormal numbers count as zeros, as a bfloat16 chain has it. This is the reference for what
// processors do by themselves: `exact` is the result, to far more digits than a float has where it is near 2⁻¹²⁶.
float flushed(double exact, float rounded) {
  const bool tiny = __builtin_fabs(exact) < 0x1p-126 - 0x1p-151 || __builtin_fabsf(rounded) < 0x1p-126f;
  return tiny ? __builtin_copysignf(0.0f, rounded) : rounded;
}
float flushed(float value) { return flushed(value, value); }

Vector multiply_add_flushed(Vector left, Vector right, Vector sum) {
  Vector result;
  for (int i = 0; i < 4; ++i) {
    const float x = flushed(left[i]), y = flushed(right[i]), z = flushed(sum[i]);
    result[i] = flushed(static_cast<double>(x) * y + z, __builtin_fmaf(x, y, z));
  }
  return result;
}
Vector multiply_flushed(Vector left, Vector right) {
  Vector result;
  for (int i = 0; i < 4; ++i) {
    const float x = flushed(left[i]), y = flushed(right[i]);
    result[i] = flushed(static_cast<double>(x) * y, x * y);
  }
  return result;
}
Vector add_flushed(Vector left, Vector right) {
  Vector result;
  for (int i = 0; i < 4; ++i) result[i] = flushed(flushed(left[i]) + flushed(right[i]));
  return result;
}

#include "src/numerics/chain_kernel.inc"

}  // namespace

extern const ChainKernel chain_kernel_plain;
const ChainKernel chain_kernel_plain = {
    "plain", panel_cols, compute_columns<Floats>, compute_columns<Bf16Format>, left_words, block_depth* panel_cols};

}  // namespace muonwalk
