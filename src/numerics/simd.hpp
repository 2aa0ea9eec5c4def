#pragma once

// The widest vector of floats that the target's processor adds and multiplies in one instruction, in the vector
// extension that GCC and Clang share. Only the fused multiply-add needs a name of the processor's own: the project is
// compiled with -ffp-contract=off, so that a fused operation stands exactly where it is written and nowhere else.

#include <cstring>
#include <utility>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#elif defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif

namespace muonwalk {

/// Bytes of the widest vector register of the processor that this is compiled for.
#if defined(__AVX512F__)
constexpr int simd_bytes = 64;
#elif defined(__AVX__)
constexpr int simd_bytes = 32;
#else
constexpr int simd_bytes = 16;
#endif

/// Registers of that width: they decide how large a tile of sums can be kept in them.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int simd_registers = 32;
#else
constexpr int simd_registers = 16;
#endif

/// One register full of floats; lanes of them.
using Lanes = float __attribute__((vector_size(simd_bytes)));
/// How many floats a register holds.
constexpr int lanes = simd_bytes / static_cast<int>(sizeof(float));

/// Reads `lanes` floats; `from` needs no alignment.
inline Lanes load_lanes(const float* from) {
  Lanes value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Writes `lanes` floats; `to` needs no alignment.
inline void store_lanes(float* to, Lanes value) { std::memcpy(to, &value, sizeof(value)); }

/// The same number in every lane. (Subtracting zero, unlike adding it, keeps the sign of a zero.)
inline Lanes in_all_lanes(float value) { return value - Lanes{}; }

/// left · right + sum in every lane, rounded once where the processor can do that and twice where it cannot.
inline Lanes multiply_add(Lanes left, Lanes right, Lanes sum) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(left, right, sum);
#elif defined(__AVX__) && defined(__FMA__)
  return _mm256_fmadd_ps(left, right, sum);
#elif defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA)
  return vfmaq_f32(sum, left, right);
#else
  return left * right + sum;
#endif
}

/// Whether multiply_add rounds once.
#if defined(__FMA__) || defined(__AVX512F__) || (defined(__ARM_NEON) && defined(__ARM_FEATURE_FMA))
constexpr bool multiply_add_is_fused = true;
#else
constexpr bool multiply_add_is_fused = false;
#endif

namespace simd_detail {

/// The lower halves of x and y, lane by lane in turn: x0, y0, x1, y1, …
template <std::size_t... i>
inline Lanes zip_low(Lanes x, Lanes y, std::index_sequence<i...>) {
  return __builtin_shufflevector(x, y, (static_cast<int>(i) / 2 + static_cast<int>(i) % 2 * lanes)...);
}
/// The same of the upper halves.
template <std::size_t... i>
inline Lanes zip_high(Lanes x, Lanes y, std::index_sequence<i...>) {
  return __builtin_shufflevector(x, y, (lanes / 2 + static_cast<int>(i) / 2 + static_cast<int>(i) % 2 * lanes)...);
}

}  // namespace simd_detail

/// Writes the transpose of a lanes × lanes block: to[j][i] = from[i][j]. Each pass zips row i with row i + lanes / 2,
/// which rotates the bits of an element's position (row, column) by one place; log₂(lanes) passes exchange row and
/// column.
inline void transpose_block(const float* from, std::ptrdiff_t from_stride, float* to, std::ptrdiff_t to_stride) {
  using Positions = std::make_index_sequence<lanes>;
  Lanes rows[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) rows[i] = load_lanes(from + i * from_stride);
#pragma GCC unroll 4
  for (int pass = 1; pass < lanes; pass *= 2) {
    Lanes zipped[lanes];
#pragma GCC unroll 8
    for (int i = 0; i < lanes / 2; ++i) {
      zipped[2 * i] = simd_detail::zip_low(rows[i], rows[i + lanes / 2], Positions());
      zipped[2 * i + 1] = simd_detail::zip_high(rows[i], rows[i + lanes / 2], Positions());
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) rows[i] = zipped[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) store_lanes(to + i * to_stride, rows[i]);
}

}  // namespace muonwalk
