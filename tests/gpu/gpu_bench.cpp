// How fast Newton–Schulz by chains is on a GPU, beside the device's peak.
//
//     gpu_bench [--once] [ROWSxCOLS...]      --once measures a single call; it exits with 1 where the chain has not the
//     CPU's bits
//
// All rates are measured here, but for the peak, which is predicted: multiprocessors · lanes · 2 · clock. Effective
// TFLOP/s count the operations of the plain formula (newton_schulz_flops), though the chain computes symmetric products
// by halves.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "src/cuda/newton_schulz_cuda.hpp"
#include "src/errors.hpp"
#include "src/numerics/philox.hpp"
#include "tests/bench/flops_by_halves.hpp"

using namespace muonwalk;
using namespace muonwalk::cuda;

namespace {

using Clock = std::chrono::steady_clock;

struct Gpu {
  Device device{0};
  Kernels kernels{device};
  Stream stream{device};
  bool once = false;
  double peak = 0;  // FLOP/s of multiply-adds in float32
};

// Lanes for float32 in one multiprocessor, by compute capability (NVIDIA, "CUDA C++ Programming Guide", throughput of
// native arithmetic instructions); 0 where this table does not know.
int lanes_of(int major, int minor) {
  if (major == 7 || (major == 8 && minor == 0)) return 64;
  return major >= 8 && major <= 12 ? 128 : 0;
}

double predicted_peak(const Device& device) {
  const int lanes = lanes_of(device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                             device.attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  const double clock = 1e3 * device.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  return 2.0 * lanes * clock * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

// Seconds of one call, after one that is not counted: the best of three rounds of at least a fifth of a second.
double seconds_of(const Gpu& gpu, const std::function<void()>& call) {
  call();
  gpu.stream.wait();
  double best = 1e30;
  for (int round = 0; round < (gpu.once ? 1 : 3); ++round) {
    const auto start = Clock::now();
    int calls = 0;
    double seconds = 0;
    do {
      call();
      gpu.stream.wait();
      ++calls;
      seconds = std::chrono::duration<double>(Clock::now() - start).count();
    } while (seconds < 0.2 && calls < 1000 && !gpu.once);
    best = std::min(best, seconds / calls);
  }
  return best;
}

Matrix downloaded(const Gpu& gpu, const DeviceArray<float>& there, Index rows, Index cols) {
  Matrix x(rows, cols);
  copy_to_host(gpu.stream, x.data(), there.data(), x.size());
  return x;
}

// One line of the table. False where the chain has not the CPU's bits.
bool measure(const Gpu& gpu, Index rows, Index cols, Precision precision) {
  NewtonSchulzSettings settings;
  settings.precision = precision;
  settings.products = Products::chain;
  const Matrix x = random_matrix(RandomTensor{1, 2}, rows, cols);
  DeviceArray<float> there(gpu.device, x.size()), out(gpu.device, x.size());
  copy(gpu.stream, there.data(), x.data(), x.size());
  gpu.stream.wait();

  const double flops = newton_schulz_flops(rows, cols, settings.steps);
  const double done = newton_schulz_flops_by_halves(rows, cols, precision, settings.steps);
  NewtonSchulzMemory chain_memory(gpu.device, rows, cols, precision);
  const double chain_seconds = seconds_of(
      gpu, [&] { newton_schulz_chain(gpu.kernels, gpu.stream, chain_memory, there.data(), settings, out.data()); });
  const Matrix chain = downloaded(gpu, out, rows, cols);
  const std::string share = gpu.peak > 0 ? fmt::format("{:.1f} %", 100 * done / chain_seconds / gpu.peak) : "?";
  fmt::print("| {} × {} | {} | {:.2f} | {} |", rows, cols, precision_name(precision), flops / chain_seconds / 1e12,
             share);
  // The CPU computes small ones again: the chain's bits are its bits.
  const bool small = flops < 3e10, equal = !small || same_bits(newton_schulz(x, settings), chain);
  fmt::print(" {} |\n", !small ? "not computed there" : equal ? "yes" : "NO");
  std::fflush(stdout);
  return equal;
}

int run(int argc, char** argv) {
  std::vector<std::pair<Index, Index>> shapes;
  const bool once = argc > 1 && std::string(argv[1]) == "--once";
  for (int i = once ? 2 : 1; i < argc; ++i) {
    long long rows = 0, cols = 0;
    char end = 0;
    if (std::sscanf(argv[i], "%lldx%lld%c", &rows, &cols, &end) != 2 || rows < 1 || cols < 1)
      throw UsageError(fmt::format("\"{}\" is not a shape; write it as 4096x11008", argv[i]));
    shapes.push_back({rows, cols});
  }
  if (shapes.empty()) shapes = {{512, 1024}, {1024, 1024}, {1024, 4096}, {4096, 4096}, {4096, 11008}, {11008, 4096}};

  Gpu gpu;
  gpu.once = once;
  int driver = 0;
  gpu.device.check(cuda_library().cuDriverGetVersion(&driver), "cuDriverGetVersion");
  gpu.peak = predicted_peak(gpu.device);
  fmt::print(
      "{}: {} multiprocessors, {} MHz; the driver knows CUDA {}.{}; the peak of multiply-adds in float32 is "
      "predicted as {:.1f} TFLOP/s\n\n",
      gpu.device.name(), gpu.device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
      gpu.device.attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000, driver / 1000, driver % 1000 / 10, gpu.peak / 1e12);
  fmt::print(
      "| matrix | precision | chain, effective TFLOP/s | what it computes, of the peak | chain has the CPU's bits |\n"
      "|---|---|---|---|---|\n");
  bool all_equal = true;
  for (const Precision precision : {Precision::fp32, Precision::bf16})
    for (const auto& [rows, cols] : shapes) all_equal = measure(gpu, rows, cols, precision) && all_equal;
  return all_equal ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const UsageError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  } catch (const RunError& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
