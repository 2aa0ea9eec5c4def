#pragma once

#include <cstdint>

namespace muonwalk {

/// left · right + addend, rounded once, with no more than a double's operations. The sum is rounded to odd first (Boldo
/// and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008): where
/// 53 bits don't hold it, to the one of its neighbours whose last bit is 1, which lies halfway between no two floats.
inline float fused_in_doubles(float left, float right, float addend) {
  const double product = static_cast<double>(left) * right;
  double sum = product + addend;
  const double added = sum - product;
  const double error = (product - (sum - added)) + (addend - added);
  std::uint64_t bits;
  __builtin_memcpy(&bits, &sum, sizeof(bits));
  if ((error < 0 || error > 0) && bits % 2 == 0) (error > 0) == (sum > 0) ? ++bits : --bits;
  __builtin_memcpy(&sum, &bits, sizeof(bits));
  return static_cast<float>(sum);
}

/// left · right + addend, rounded once: by the processor where it can, and never by fmaf of the C library, which is
/// wrong in half of the halfway cases in Emscripten's.
inline float fused(float left, float right, float addend) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(left, right, addend);
#else
  return fused_in_doubles(left, right, addend);
#endif
}

}  // namespace muonwalk
