// Newton–Schulz on a device against the CPU's. Over the stand-ins, and by tests/gpu/run.sh on a GPU.

#include "src/cuda/newton_schulz_cuda.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "src/errors.hpp"
#include "tests/cuda/on_device.hpp"
#include "tests/numerics/random_product.hpp"

using namespace muonwalk;
using namespace muonwalk::cuda;

namespace {

NewtonSchulzSettings settings_of(Precision precision, int steps) {
  NewtonSchulzSettings settings;
  settings.precision = precision;
  settings.products = Products::chain;
  settings.steps = steps;
  return settings;
}

Matrix random_matrix(std::mt19937& random, Index rows, Index cols) {
  Matrix x(rows, cols);
  RandomNumbers number = {random, Numbers::ordinary};
  const float scale = std::ldexp(1.0f, static_cast<int>(random() % 40) - 20);
  for (float& value : x.flat()) value = scale * number();
  return x;
}

std::string what_it_says(const std::function<void()>& function) {
  try {
    function();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "newton_schulz on a device: any shape, precision and steps: the CPU's chains, bit for bit, and as much memory") {
  const OnDevice gpu;
  const ChainEngine engine = chain_engine(gpu.device);
  std::mt19937 random(11);
  for (int i = 0; i < 24; ++i) {
    run_threads_in_order(static_cast<unsigned>(i % 3));
    const Index largest = i % 6 == 5 ? 200 : 60;
    const Index rows = static_cast<Index>(random() % largest) + (i == 0 ? 0 : 1);
    const Index cols = i == 0 ? 0 : static_cast<Index>(random() % largest) + 1;
    const Precision precision = i % 2 ? Precision::bf16 : Precision::fp32;
    const NewtonSchulzSettings settings = settings_of(precision, i % 6);
    const Matrix x = random_matrix(random, rows, cols);
    CAPTURE(shape_text(rows, cols));
    CAPTURE(i);

    MemoryMeter here, there;
    const Matrix expected = [&] {
      const MeterScope count(here);
      return newton_schulz(x, settings);
    }();
    const ChainEngineScope on_gpu(engine);
    const Matrix result = [&] {
      const MeterScope count(there);
      return newton_schulz(x, settings);
    }();
    CHECK(same_bits(result, expected));
    CHECK(there.peak() == here.peak());
    CHECK(there.live() == here.live());

    const auto on_device = gpu.uploaded(x.flat());
    auto out = gpu.uploaded(x.flat());
    NewtonSchulzMemory memory(gpu.device, rows, cols, precision);
    newton_schulz_chain(gpu.kernels, gpu.stream, memory, on_device.data(), settings, out.data());
    CHECK(same_bits(Matrix(rows, cols, gpu.downloaded(out)), expected));
    // Again in the same memory, and over what it is made of.
    newton_schulz_chain(gpu.kernels, gpu.stream, memory, out.data(), settings_of(precision, 1), out.data());
    CHECK(same_bits(Matrix(rows, cols, gpu.downloaded(out)), newton_schulz(expected, settings_of(precision, 1))));
  }
}

TEST_CASE("newton_schulz on a device: what is not finite is refused in the CPU's words") {
  const OnDevice gpu;
  const ChainEngine engine = chain_engine(gpu.device);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::max()}) {
    for (const bool tall : {false, true}) {
      Matrix x(tall ? 7 : 4, tall ? 4 : 7);
      for (float& value : x.flat()) value = 1;
      x(3, 2) = bad;
      const auto settings = settings_of(Precision::bf16, 5);
      const std::string words = what_it_says([&] { newton_schulz(x, settings, "w"); });
      CHECK(words.find("at row 3, column 2") != std::string::npos);
      const ChainEngineScope scope(engine);
      CHECK(what_it_says([&] { newton_schulz(x, settings, "w"); }) == words);
    }
  }
}
