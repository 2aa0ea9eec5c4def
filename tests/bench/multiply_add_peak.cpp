#include "tests/bench/multiply_add_peak.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

namespace muonwalk::bench {

namespace {

#if defined(__AVX512F__)
using Vector = float __attribute__((vector_size(64)));
#elif defined(__AVX__)
using Vector = float __attribute__((vector_size(32)));
#else
using Vector = float __attribute__((vector_size(16)));
#endif

constexpr int steps = 1000000;
constexpr int chains = 12;  // independent sums: more than latency × width of any processor's multiply-add units
constexpr double flops = 2.0 * steps * chains * sizeof(Vector) / sizeof(float);

// This file alone is compiled with -ffp-contract=fast, so that s · f + t is one instruction.
void loop() {
  volatile float factor = 0.999f;  // unknown to the compiler, which would otherwise work out the end
  volatile float term = 0.001f;
  const Vector factors = factor - Vector{};
  const Vector terms = term - Vector{};
  Vector sums[chains];  // they start apart, because the compiler makes one chain of equal ones
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) sums[i] = static_cast<float>(i) - Vector{};
  for (int step = 0; step < steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < chains; ++i) sums[i] = sums[i] * factors + terms;
  }
  Vector total = {};
#pragma GCC unroll 16
  for (int i = 0; i < chains; ++i) total += sums[i];  // unrolled as well, or the sums would live in memory
  volatile float result = total[0];
  static_cast<void>(result);
}

}  // namespace

double multiply_add_peak() {
  timespec begin, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
  loop();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  return flops /
         (1e9 * static_cast<double>(end.tv_sec - begin.tv_sec) + static_cast<double>(end.tv_nsec - begin.tv_nsec));
}

double multiply_add_peak_of(int threads) {
  std::vector<double> peaks;
  for (int run = 0; run < 5; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
      all.emplace_back([] {
        for (int repeat = 0; repeat < 20; ++repeat) loop();
      });
    for (std::thread& thread : all) thread.join();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    peaks.push_back(20e-9 * flops * threads / seconds);
  }
  std::sort(peaks.begin(), peaks.end());
  return peaks[peaks.size() / 2];
}

}  // namespace muonwalk::bench
