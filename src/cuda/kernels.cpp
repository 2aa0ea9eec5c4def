#include "src/cuda/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "src/cuda/kernel_arguments.inc"

/// What nvcc has made of kernels.cu, for several kinds of GPU: CMakeLists.txt has it written into a source of its own.
extern "C" const unsigned char muonwalk_kernels_image[];

namespace muonwalk::cuda {
namespace {

static_assert(sizeof(Count) == sizeof(Index), "a count on the device is an Index on the host");
static_assert(sizeof(Count) + sizeof(void*) + sizeof(TreeSumParts) <= 4096, "kernels are given at most 4096 bytes");

Index parts_of(Index whole, Index part) { return (whole + part - 1) / part; }

// A kernel that takes what the type of its declaration says.
template <class Function>
struct Kernel {
  const char* name;
  CUfunction handle = nullptr;
};

}  // namespace

struct Kernels::Module {
  Device device;
  CUmodule module = nullptr;
#define MUONWALK_KERNEL(name) Kernel<decltype(cuda::name)> name{#name};
  MUONWALK_KERNELS(MUONWALK_KERNEL)
#undef MUONWALK_KERNEL

  explicit Module(const Device& its_device) : device(its_device) {
    device.make_current();
    device.check(cuda_library().cuModuleLoadData(&module, muonwalk_kernels_image), "cuModuleLoadData");
#define MUONWALK_FIND(name) find(name);
    MUONWALK_KERNELS(MUONWALK_FIND)
#undef MUONWALK_FIND
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module() {
    device.make_current_quietly();
    cuda_library().cuModuleUnload(module);
  }

  template <class Function>
  void find(Kernel<Function>& kernel) const {
    const CUresult result = cuda_library().cuModuleGetFunction(&kernel.handle, module, kernel.name);
    if (result != CUDA_SUCCESS) cuda_library().cuModuleUnload(module);
    device.check(result, fmt::format("cuModuleGetFunction of {}", kernel.name));
  }

  template <class... Parameters>
  void launch(const Stream& stream, const Kernel<void(Parameters...)>& kernel, Index blocks, int threads,
              std::decay_t<Parameters>... arguments) const {
    if (blocks > std::numeric_limits<int>::max())
      throw std::invalid_argument(
          fmt::format("kernel {} would need {} blocks, and a GPU has at most 2147483647", kernel.name, blocks));
    device.make_current();
    void* addresses[] = {&arguments...};
    device.check(
        cuda_library().cuLaunchKernel(kernel.handle, static_cast<unsigned>(blocks), 1, 1,
                                      static_cast<unsigned>(threads), 1, 1, 0, stream.handle(), addresses, nullptr),
        fmt::format("cuLaunchKernel of {}", kernel.name));
    tell_queued(stream, Queued::kernel);
  }

  // Where every element is computed by itself: enough threads to keep the device busy, each with its share.
  template <class... Parameters>
  void launch_over(const Stream& stream, const Kernel<void(Count, Parameters...)>& kernel, Index count,
                   std::decay_t<Parameters>... arguments) const {
    constexpr Index most_blocks = 4096;
    const Index blocks = std::min(parts_of(count, plain_threads), most_blocks);
    if (count > 0) launch(stream, kernel, blocks, plain_threads, count, arguments...);
  }

  template <class T, class Out>
  void tree_sum(const Stream& stream, const Kernel<void(Count, Out*, TreeSumParts)>& kernel,
                const std::vector<const T*>& parts, Index count, T* out) const {
    if (parts.size() > most_parts)
      throw std::invalid_argument(
          fmt::format("the GPU's tree adds at most {} parts at a time, and these are {}", most_parts, parts.size()));
    TreeSumParts a = {static_cast<int>(parts.size()), {}};
    std::copy(parts.begin(), parts.end(), a.part);
    launch_over(stream, kernel, count, reinterpret_cast<Out*>(out), a);
  }
};

Kernels::Kernels(const Device& device) : module_(std::make_shared<const Module>(device)) {}

const Device& Kernels::device() const { return module_->device; }

void Kernels::product(const Stream& stream, const ChainProduct& p) const {
  if (p.rows == 0 || p.cols == 0) return;
  if (p.left_transposed || p.left_row != 0 || p.right_row != 0 || p.out_row != 0)
    throw std::invalid_argument("a product on a GPU takes whole matrices, the left one as it is");
  if (p.in_tiles && p.precision == Precision::bf16)
    throw std::invalid_argument("a product on a GPU is added as a chain, not in tiles; take Products::chain");
  const ProductArguments a = {p.rows,
                              p.cols,
                              p.depth,
                              p.left,
                              p.right,
                              p.addend,
                              p.out,
                              p.left_scale,
                              p.addend_scale,
                              p.right_transposed ? 1 : 0,
                              p.symmetric ? 1 : 0};
  const Index down = parts_of(p.rows, product_tile), across = parts_of(p.cols, product_tile);
  module_->launch(stream, p.precision == Precision::bf16 ? module_->chain_bf16 : module_->chain_fp32,
                  p.symmetric ? down * (down + 1) / 2 : down * across, product_threads, a);
}

void Kernels::transpose(const Stream& stream, const float* from, Index rows, Index cols, float* to) const {
  if (rows == 0 || cols == 0) return;
  module_->launch(stream, module_->transpose, parts_of(rows, transpose_tile) * parts_of(cols, transpose_tile),
                  transpose_tile * transpose_rows, rows, cols, from, to);
}

Index Kernels::sum_of_squares_room(Index count) { return std::max(Index{1}, parts_of(count, leaf_values)); }

void Kernels::sum_of_squares(const Stream& stream, const float* values, Index count, double* room) const {
  if (count == 0) return set_to_zero(stream, room, sizeof(double));
  const Index leaves = sum_of_squares_room(count);
  module_->launch(stream, module_->leaf_sums, parts_of(leaves, leaf_threads / leaf_lanes), leaf_threads, count, values,
                  room);
  if (leaves > 1) module_->launch(stream, module_->tree_of_doubles, 1, tree_threads, leaves, room);
}

void Kernels::divide(const Stream& stream, float* values, Index count, double denominator, Precision precision) const {
  module_->launch_over(stream, module_->divide, count, values, denominator, precision == Precision::bf16);
}

void Kernels::scale_to_bf16(const Stream& stream, float scale, const float* values, Index count, float* out) const {
  module_->launch_over(stream, module_->scale_to_bf16, count, scale, values, out);
}

void Kernels::to_bf16(const Stream& stream, const float* values, Index count, bfloat16* out) const {
  static_assert(sizeof(bfloat16) == sizeof(unsigned short), "a bfloat16 is its 16 bits");
  module_->launch_over(stream, module_->to_bf16, count, values, reinterpret_cast<unsigned short*>(out));
}

void Kernels::from_bf16(const Stream& stream, const bfloat16* values, Index count, float* out) const {
  module_->launch_over(stream, module_->from_bf16, count, reinterpret_cast<const unsigned short*>(values), out);
}

void Kernels::momentum(const Stream& stream, const float* gradient, float* momentum_buffer, Index count, float mu,
                       bool nesterov, float* update) const {
  module_->launch_over(stream, module_->momentum_step, count, gradient, momentum_buffer, update, mu, nesterov);
}

void Kernels::apply(const Stream& stream, float* weights, const float* orthogonal, Index count, float keep,
                    float scale) const {
  module_->launch_over(stream, module_->apply_update, count, weights, orthogonal, keep, scale);
}

void Kernels::tree_sum(const Stream& stream, const std::vector<const float*>& parts, Index count, float* out) const {
  module_->tree_sum(stream, module_->tree_sum_fp32, parts, count, out);
}

void Kernels::tree_sum(const Stream& stream, const std::vector<const bfloat16*>& parts, Index count,
                       bfloat16* out) const {
  module_->tree_sum(stream, module_->tree_sum_bf16, parts, count, out);
}

}  // namespace muonwalk::cuda
