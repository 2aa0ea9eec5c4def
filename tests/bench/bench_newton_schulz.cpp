// How fast Newton–Schulz is: against the same formula written plainly in Eigen, against the processor's own peak of
// fused multiply-adds, and with two threads against one. Everything that a ratio compares is measured in the same run,
// turn by turn, and of every measurement the median counts, because a machine is never quiet for long.

#include <benchmark/benchmark.h>

#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <thread>
#include <vector>

#include "src/numerics/eigen_view.hpp"
#include "src/numerics/newton_schulz.hpp"
#include "src/numerics/philox.hpp"
#include "src/numerics/simd.hpp"

using namespace muonwalk;

namespace {

// The formula for a wide matrix, as one would write it first.
EigenMatrix plain_eigen(const Matrix& input) {
  const Quintic q;
  EigenMatrix x = eigen_view(input);
  x /= x.norm() + 1e-7f;
  EigenMatrix a(x.rows(), x.rows());
  EigenMatrix b(x.rows(), x.rows());
  for (int step = 0; step < 5; ++step) {
    a.noalias() = x * x.transpose();
    b.noalias() = (q.c * a) * a;
    b += q.b * a;
    x = q.a * x + b * x;
  }
  return x;
}

// One thread is timed in processor time, which other programs on the machine disturb less; several need the wall clock.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The median times of several pieces of work that take turns, `rounds` times.
std::vector<double> interleaved(const std::vector<std::function<void()>>& work, int rounds, double (*seconds)()) {
  std::vector<std::vector<double>> times(work.size());
  for (const auto& piece : work) piece();  // once unmeasured, so that nobody pays for cold caches and new pages
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < work.size(); ++i) {
      const double start = seconds();
      work[i]();
      times[i].push_back(seconds() - start);
    }
  }
  std::vector<double> medians;
  for (const auto& of_one : times) medians.push_back(median(of_one));
  return medians;
}

constexpr int peak_steps = 200000;
constexpr int peak_chains = 16;  // independent sums: more than latency × width of any processor's multiply-add units

void multiply_add_loop() {
  volatile float factor = 0.999f;  // unknown to the compiler, which would otherwise work out the end
  volatile float term = 0.001f;
  const Lanes factors = in_all_lanes(factor);
  const Lanes terms = in_all_lanes(term);
  Lanes sums[peak_chains];  // they start apart, because the compiler makes one chain of equal ones
#pragma GCC unroll 16
  for (int i = 0; i < peak_chains; ++i) sums[i] = in_all_lanes(static_cast<float>(i));
  for (int step = 0; step < peak_steps; ++step) {
#pragma GCC unroll 16
    for (int i = 0; i < peak_chains; ++i) sums[i] = multiply_add(sums[i], factors, terms);
  }
  Lanes total = {};
#pragma GCC unroll 16
  for (int i = 0; i < peak_chains; ++i) total += sums[i];  // unrolled as well, or the sums would live in memory
  float result = total[0];
  benchmark::DoNotOptimize(result);
}

constexpr double peak_loop_flops = 2.0 * peak_steps * peak_chains * lanes;

// What is left of the formula's operations when symmetric products are done by halves: 3 m²n + m³ a step.
double flops_done(Index m, Index n) { return 5.0 * (3.0 * m * m * n + 1.0 * m * m * m); }

void compare_with_eigen(Index m, Index n, int rounds, const char* target) {
  const Matrix x = random_matrix({1, 1}, m, n);
  NewtonSchulzSettings bf16;
  bf16.precision = Precision::bf16;
  const auto times = interleaved({[&] { benchmark::DoNotOptimize(plain_eigen(x).data()); },
                                  [&] { benchmark::DoNotOptimize(newton_schulz(x).data()); },
                                  [&] { benchmark::DoNotOptimize(newton_schulz(x, bf16).data()); }, multiply_add_loop},
                                 rounds, processor_seconds);
  const double effective = newton_schulz_flops(m, n) * 1e-9;
  const double peak = peak_loop_flops * 1e-9 / times[3];
  std::printf("%5d × %-5d %8.1f %9.1f %7.2f ×  %-10s %8.1f %7.0f %% %8.0f %% %9.1f\n", static_cast<int>(m),
              static_cast<int>(n), effective / times[0], effective / times[1], times[0] / times[1], target, peak,
              100 * effective / times[1] / peak, 100 * flops_done(m, n) * 1e-9 / times[1] / peak, effective / times[2]);
}

void compare_threads(Index m, Index n, int rounds, const char* target) {
  const Matrix x = random_matrix({1, 1}, m, n);
  NewtonSchulzSettings two;
  two.threads = 2;
  const auto times = interleaved({[&] { benchmark::DoNotOptimize(newton_schulz(x).data()); },
                                  [&] { benchmark::DoNotOptimize(newton_schulz(x, two).data()); }},
                                 rounds, wall_seconds);
  const double effective = newton_schulz_flops(m, n) * 1e-9;
  std::printf("%5d × %-5d %8.1f %9.1f %7.2f ×  %s\n", static_cast<int>(m), static_cast<int>(n), effective / times[0],
              effective / times[1], times[0] / times[1], target);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a line as soon as it is measured
  std::printf("Newton–Schulz, five steps, effective GFLOP/s: (20 m²n + 10 m³) / time, medians\n\n");
  std::printf("one thread (processor time)                               of the FMA peak measured beside\n");
  std::printf("    m × n        Eigen      ours   ratio    target       peak  effective  done     in bf16\n");
  compare_with_eigen(676, 876, 15, ">= 1.3");
  compare_with_eigen(1024, 4096, 3, ">= 1.2");
  compare_with_eigen(124, 456, 51, "");
  compare_with_eigen(124, 324, 51, "");
  compare_with_eigen(128, 128, 51, "");
  compare_with_eigen(100, 100, 51, "");
  std::printf(
      "\n\"done\" counts 3 m²n + m³ a step: symmetric products are computed once and mirrored%s.\n\n",
      multiply_add_is_fused ? "" : "; this build has no fused multiply-add, so that the peak is of products and sums");
  if (std::thread::hardware_concurrency() < 2) {
    std::printf("two threads against one: not measured, because this machine has one processor.\n");
    return 0;
  }
  std::printf("two threads against one (wall clock; needs two processors that are free)\n");
  std::printf("    m × n          one       two   ratio    target\n");
  compare_threads(676, 876, 21, ">= 1.8");
  compare_threads(1024, 4096, 3, ">= 1.8");
}
