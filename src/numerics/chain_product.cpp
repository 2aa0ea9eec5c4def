#include "src/numerics/chain_product.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <stdexcept>

#include "src/numerics/code_for_processor.hpp"

namespace muonwalk {

extern const ChainKernel chain_kernel_plain;
#ifdef __x86_64__
extern const ChainKernel chain_kernel_avx2;
extern const ChainKernel chain_kernel_avx512;
extern const ChainKernel chain_kernel_avx512_bf16;
extern const ChainKernel chain_kernel_amx;
#endif

namespace {

// Unmetered working memory that a thread keeps from product to product: the meter counts what a rank holds.
struct Room {
  struct Release {
    void operator()(float* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  float* of(Index floats) {
    if (floats > size) {
      const auto bytes = static_cast<std::size_t>(floats) * sizeof(float);
      memory.reset(static_cast<float*>(::operator new (bytes, std::align_val_t{64})));
      size = floats;
    }
    return memory.get();
  }
  std::unique_ptr<float, Release> memory;
  Index size = 0;
};

// The same with the distances of rows written down, as kernels take them.
ChainProduct with_rows(ChainProduct product) {
  if (product.left_row == 0) product.left_row = product.left_transposed ? product.rows : product.depth;
  if (product.right_row == 0) product.right_row = product.right_transposed ? product.depth : product.cols;
  if (product.out_row == 0) product.out_row = product.cols;
  return product;
}

void compute_columns(const ChainProduct& product, const ChainKernel& kernel, Index first, Index last) {
  thread_local Room left, right;
  (product.precision == Precision::fp32 ? kernel.fp32
   : product.in_tiles                   ? kernel.tiles
                      : kernel.bf16)(product, first, last, left.of(kernel.left_room), right.of(kernel.right_room));
}

// Where part number `part` of `parts` equal shares of the work begins: a column at the start of a panel. A symmetric
// product does size − j rows of column j, so that its shares of the columns grow to the right.
Index first_column_of(const ChainProduct& p, Index panel_cols, int part, int parts) {
  if (part == parts) return p.cols;
  const double share = static_cast<double>(part) / parts;
  const double position = p.symmetric ? 1 - std::sqrt(1 - share) : share;
  const auto panel = static_cast<Index>(std::llround(position * static_cast<double>(p.cols) / panel_cols));
  return std::min(panel * panel_cols, p.cols);
}

}  // namespace

std::vector<const ChainKernel*> chain_kernels() {
  std::vector<const ChainKernel*> kernels = {&chain_kernel_plain};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) kernels.push_back(&chain_kernel_avx2);
  const bool avx512 = has_avx512();
  // Intel's processors have vdpbf16ps, but it is slow there: an Intel Xeon of 2023 multiplies 103 GFLOP/s a core with
  // it, and 209 with fused multiply-adds. On AMD's Zen 4, 233 and 116 were measured.
  const bool pairs_are_fast = __builtin_cpu_is("amd");
  if (avx512 && __builtin_cpu_supports("avx512bf16") && !pairs_are_fast) kernels.push_back(&chain_kernel_avx512_bf16);
  if (avx512) kernels.push_back(&chain_kernel_avx512);
  if (avx512 && __builtin_cpu_supports("avx512bf16") && pairs_are_fast) kernels.push_back(&chain_kernel_avx512_bf16);
  if (avx512 && __builtin_cpu_supports("avx512bf16") && has_amx()) kernels.push_back(&chain_kernel_amx);
#endif
  return kernels;
}

const ChainKernel& chain_kernel() {
  static const ChainKernel& kernel = chosen_code(chain_kernels(), "MUONWALK_CHAIN", "chains");
  return kernel;
}

void compute(const ChainProduct& product, int threads) { compute(product, threads, chain_kernel()); }

void compute(const ChainProduct& as_given, int threads, const ChainKernel& kernel) {
  if (as_given.rows == 0 || as_given.cols == 0) return;
  if (as_given.left_transposed && as_given.precision == Precision::bf16)
    throw std::invalid_argument("a product in bf16 takes its left factor as it is; transpose it first");
  const ChainProduct product = with_rows(as_given);
  if (threads <= 1) {
    // No parallel region at all: its pool of threads would not survive a fork of this process.
    compute_columns(product, kernel, 0, product.cols);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int part = 0; part < threads; ++part) {
    const Index first = first_column_of(product, kernel.panel_cols, part, threads);
    const Index last = first_column_of(product, kernel.panel_cols, part + 1, threads);
    if (first < last) compute_columns(product, kernel, first, last);
  }
}

}  // namespace muonwalk
