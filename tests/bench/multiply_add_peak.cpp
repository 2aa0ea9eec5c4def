#include "tests/bench/multiply_add_peak.hpp"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

#include <algorithm>
#include <ctime>
#include <numeric>
#include <thread>
#include <vector>

#include "src/numerics/code_for_processor.hpp"

namespace muonwalk::bench {

namespace {

using Of128Bits = float __attribute__((vector_size(16)));
using Of256Bits = float __attribute__((vector_size(32)));
using Of512Bits = float __attribute__((vector_size(64)));
#if defined(__AVX512F__)
using Widest = Of512Bits;
using WidestOfAVX2 = Of256Bits;
#elif defined(__AVX__)
using Widest = Of256Bits;
using WidestOfAVX2 = Of256Bits;
#else
using Widest = Of128Bits;
using WidestOfAVX2 = Of128Bits;
#endif

constexpr int steps = 1000000;
constexpr int chains = 12;  // independent sums: more than latency × width of any processor's multiply-add units

template <class VectorOfFloats>
struct Floats {
  using Vector = VectorOfFloats;
  static constexpr double flops = 2.0 * steps * chains * sizeof(Vector) / sizeof(float);
  // This file alone is compiled with -ffp-contract=fast, so that this is one instruction.
  static Vector step(Vector sum, Vector factors, Vector terms) { return sum * factors + terms; }
};

#ifdef __AVX512BF16__
struct Pairs {
  using Vector = Of512Bits;
  static constexpr double flops = 2 * Floats<Vector>::flops;
  static Vector step(Vector sum, Vector factors, Vector terms) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(factors), reinterpret_cast<__m512bh>(terms));
  }
};
#endif

// Returns the operations done.
template <class Kind>
double loop() {
  using Vector = typename Kind::Vector;
  volatile float factor = 0.999f;  // unknown to the compiler, which would otherwise work out the end
  volatile float term = 0.001f;
  const Vector factors = factor - Vector{};
  const Vector terms = term - Vector{};
  Vector sums[chains];  // they start apart, because the compiler makes one chain of equal ones
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) sums[i] = static_cast<float>(i) - Vector{};
  for (int step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i) sums[i] = Kind::step(sums[i], factors, terms);
  }
  Vector total = {};
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) total += sums[i];  // unrolled as well, or the sums would live in memory
  volatile float result = total[0];
  static_cast<void>(result);
  return Kind::flops;
}

#ifdef __AMX_BF16__
// Four tiles of sums, for the same reason.
double loop_of_tiles() {
  if (!has_amx()) return 0;
  alignas(64) static const struct {
    unsigned char palette = 1, rest[15] = {};
    unsigned short bytes[16] = {64, 64, 64, 64, 64, 64};
    unsigned char rows[16] = {16, 16, 16, 16, 16, 16};
  } shapes;
  _tile_loadconfig(&shapes);
  for (int step = 0; step < steps; ++step) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
  return 4.0 * steps * 2 * 16 * 16 * 32;
}
#endif

double (*loop_of(MultiplyAdd kind))() {
  if (kind == MultiplyAdd::widest) return loop<Floats<Widest>>;
  if (kind == MultiplyAdd::avx2) return loop<Floats<WidestOfAVX2>>;
#ifdef __AMX_BF16__
  if (kind == MultiplyAdd::tiles) return loop_of_tiles;
#endif
#ifdef __AVX512BF16__
  if (kind == MultiplyAdd::pairs) return loop<Pairs>;
#endif
  return [] { return 0.0; };
}

}  // namespace

double multiply_add_peak(MultiplyAdd kind) {
  timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  const double flops = loop_of(kind)();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return flops /
         (1e9 * static_cast<double>(end.tv_sec - begin.tv_sec) + static_cast<double>(end.tv_nsec - begin.tv_nsec));
}

double multiply_add_peak_of(int threads, MultiplyAdd kind) {
  std::vector<double> peaks;
  for (int run = 0; run < 100; ++run) {
    std::vector<double> of_each(static_cast<std::size_t>(threads));
    std::vector<std::thread> all;
    for (double& peak : of_each) all.emplace_back([&peak, kind] { peak = multiply_add_peak(kind); });
    for (std::thread& thread : all) thread.join();
    peaks.push_back(std::accumulate(of_each.begin(), of_each.end(), 0.0));
  }
  std::sort(peaks.begin(), peaks.end());
  return peaks[peaks.size() / 2];
}

}  // namespace muonwalk::bench
