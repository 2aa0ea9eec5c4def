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
#include "src/numerics/newton_schulz_steps.hpp"
#include "src/numerics/philox.hpp"
#include "tests/bench/flops_by_halves.hpp"
#include "tests/bench/multiply_add_peak.hpp"

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

NewtonSchulzSettings with(Products products, Precision precision, int threads = 1) {
  NewtonSchulzSettings settings;
  settings.products = products;
  settings.precision = precision;
  settings.threads = threads;
  return settings;
}

std::function<void()> orthogonalization(const Matrix& x, const NewtonSchulzSettings& settings) {
  return [&x, settings] { benchmark::DoNotOptimize(newton_schulz(x, settings).data()); };
}

void compare_engines(Index m, Index n, int rounds) {
  const Matrix x = random_matrix({1, 1}, m, n);
  double peak = 0, tiles = 0;
  const auto times = interleaved({[&] { benchmark::DoNotOptimize(plain_eigen(x).data()); },
                                  orthogonalization(x, with(Products::eigen, Precision::fp32)),
                                  orthogonalization(x, with(Products::chain, Precision::fp32)),
                                  orthogonalization(x, with(Products::eigen, Precision::bf16)),
                                  orthogonalization(x, with(Products::chain, Precision::bf16)),
                                  orthogonalization(x, with(Products::tiles, Precision::bf16)),
                                  [&] { tiles = std::max(tiles, bench::multiply_add_peak(bench::MultiplyAdd::tiles)); },
                                  [&] { peak = std::max(peak, bench::multiply_add_peak()); }},
                                 rounds, processor_seconds);
  const double effective = newton_schulz_flops(m, n) * 1e-9;
  const auto of_peak = [&](std::size_t i, Precision precision) {
    return 100 * newton_schulz_flops_by_halves(m, n, precision) * 1e-9 / times[i] / peak;
  };
  std::printf(
      "%5d × %-5d %6.1f %8.1f %6.1f %6.2f × %6.2f × %9.1f %6.1f %8.1f %8.0f %% %4.0f %% %6.0f %% %4.0f %% %8.1f %4.0f "
      "%%\n",
      static_cast<int>(m), static_cast<int>(n), effective / times[0], effective / times[1], effective / times[2],
      times[0] / times[1], times[0] / times[2], effective / times[3], effective / times[4], peak,
      of_peak(1, Precision::fp32), of_peak(2, Precision::fp32), of_peak(3, Precision::bf16),
      of_peak(4, Precision::bf16), effective / times[5],
      of_peak(5, Precision::bf16) * peak / (tiles > 0 ? tiles : peak));
}

// Over the time of the formula on X, with the same engine and precision.
void compare_gram(Index m, Index n, int rounds) {
  const Matrix x = random_matrix({1, 1}, m, n);
  std::vector<std::function<void()>> work;
  for (const Products products : {Products::eigen, Products::chain})
    for (const Precision precision : {Precision::fp32, Precision::bf16})
      for (const bool gram : {false, true}) {
        NewtonSchulzSettings settings = with(products, precision);
        settings.lines = IterationLines::one_call, settings.gram = gram;
        work.push_back(orthogonalization(x, settings));
      }
  const auto times = interleaved(work, rounds, processor_seconds);
  std::printf("%5d × %-5d %10.2f × %6.2f × %12.2f × %6.2f ×\n", static_cast<int>(m), static_cast<int>(n),
              times[1] / times[0], times[5] / times[4], times[3] / times[2], times[7] / times[6]);
}

void compare_threads(Index m, Index n, int rounds, Products products, const char* target) {
  const Matrix x = random_matrix({1, 1}, m, n);
  const auto times = interleaved(
      {orthogonalization(x, with(products, Precision::fp32)), orthogonalization(x, with(products, Precision::fp32, 2))},
      rounds, wall_seconds);
  const double effective = newton_schulz_flops(m, n) * 1e-9;
  std::printf("%5d × %-5d %s %8.1f %9.1f %7.2f ×  %s\n", static_cast<int>(m), static_cast<int>(n),
              products_name(products), effective / times[0], effective / times[1], times[0] / times[1], target);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a line as soon as it is measured
  std::printf("Newton–Schulz, five steps, effective GFLOP/s: (20 m²n + 10 m³) / time, medians\n\n");
  std::printf("one thread (processor time); Eigen: the formula written plainly in it\n");
  std::printf(
      "                                fp32   over plain Eigen           bf16    FMA    done, of the FMA peak          "
      "  tiles    of AMX\n");
  std::printf(
      "    m × n      Eigen    eigen  chain    eigen    chain     eigen  chain     peak  eigen  chain   in bf16        "
      "   bf16    or FMA\n");
  compare_engines(676, 876, 15);
  compare_engines(1024, 4096, 3);
  compare_engines(124, 456, 51);
  compare_engines(124, 324, 51);
  compare_engines(128, 128, 51);
  compare_engines(100, 100, 51);
  std::printf(
      "\n\"done\" counts 3 m²n + m³ a step, in bf16 3 m²n + 2 m³: half of a symmetric product is mirrored. The "
      "peak\nis that of the widest vectors; plain Eigen is compiled for AVX2 at most, engine eigen is \"%s\" here.\n\n",
      eigen_code().name);
  std::printf("on X Xᵀ (gram), over the time on X, with one call a line\n");
  std::printf("                    fp32: eigen   chain   bf16: eigen   chain\n");
  compare_gram(676, 876, 9);
  compare_gram(1024, 4096, 3);
  compare_gram(124, 456, 51);
  std::printf("\n");
  if (std::thread::hardware_concurrency() < 2) {
    std::printf("two threads against one: not measured, because this machine has one processor.\n");
    return 0;
  }
  std::printf("two threads against one (wall clock; needs two processors that are free)\n");
  std::printf("    m × n                one       two   ratio    target\n");
  for (const Products products : {Products::eigen, Products::chain}) {
    compare_threads(676, 876, 21, products, ">= 1.8");
    compare_threads(1024, 4096, 3, products, ">= 1.8");
  }
}
