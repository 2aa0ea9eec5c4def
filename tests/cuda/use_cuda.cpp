// A program that computes on GPU 0 what the CPU computes, and ends as lessons do: 0 if the bits are equal, 1 if not, 2
// for what can't be had, 3 for what broke, with one sentence. Tests start it where something is missing or fails.

#include <cstdio>

#include "src/cuda/newton_schulz_cuda.hpp"
#include "src/errors.hpp"

using namespace muonwalk;

namespace {

int compare() {
  const cuda::Device device(0, "rank 1");
  const ChainEngine engine = cuda::chain_engine(device);
  Matrix x(7, 5);
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i % 11) - 4.5f;
  NewtonSchulzSettings settings;
  settings.products = Products::chain;
  settings.precision = Precision::bf16;
  settings.steps = 2;
  const Matrix expected = newton_schulz(x, settings);
  const ChainEngineScope scope(engine);
  const bool equal = same_bits(newton_schulz(x, settings), expected);
  std::puts(equal ? "equal" : "different");
  return equal ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return compare();
  } catch (const UsageError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const RunError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
