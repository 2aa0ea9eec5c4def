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
static_assert(sizeof(TreeSumArguments) <= 4096, "an argument of a kernel has at most 4096 bytes");

Index parts_of(Index whole, Index part) { return (whole + part - 1) / part; }

}  // namespace

struct Kernels::Module {
  enum Name {
    chain_fp32,
    chain_bf16,
    transpose,
    leaf_sums,
    tree_of_doubles,
    divide,
    scale_to_bf16,
    to_bf16,
    from_bf16,
    momentum_step,
    apply_update,
    tree_sum_fp32,
    tree_sum_bf16,
    names
  };
  static constexpr const char* text[names] = {
      "chain_fp32", "chain_bf16", "transpose",     "leaf_sums",    "tree_of_doubles", "divide",       "scale_to_bf16",
      "to_bf16",    "from_bf16",  "momentum_step", "apply_update", "tree_sum_fp32",   "tree_sum_bf16"};

  Device device;
  CUmodule module = nullptr;
  CUfunction functions[names] = {};

  explicit Module(const Device& its_device) : device(its_device) {
    device.make_current();
    const CudaLibrary& library = cuda_library();
    device.check(library.cuModuleLoadData(&module, muonwalk_kernels_image), "cuModuleLoadData");
    for (int i = 0; i < names; ++i) {
      const CUresult result = library.cuModuleGetFunction(&functions[i], module, text[i]);
      if (result == CUDA_SUCCESS) continue;
      library.cuModuleUnload(module);
      device.check(result, fmt::format("cuModuleGetFunction of {}", text[i]));
    }
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module() {
    device.make_current_quietly();
    cuda_library().cuModuleUnload(module);
  }

  template <class Argument>
  void launch(const Stream& stream, Name name, Index blocks, int threads, Argument argument) const {
    if (blocks > std::numeric_limits<int>::max())
      throw std::invalid_argument(
          fmt::format("kernel {} would need {} blocks, and a GPU has at most 2147483647", text[name], blocks));
    device.make_current();
    void* arguments[] = {&argument};
    device.check(
        cuda_library().cuLaunchKernel(functions[name], static_cast<unsigned>(blocks), 1, 1,
                                      static_cast<unsigned>(threads), 1, 1, 0, stream.handle(), arguments, nullptr),
        fmt::format("cuLaunchKernel of {}", text[name]));
    tell_queued(stream, Queued::kernel);
  }

  // Where every element is computed by itself: enough threads to keep the device busy, each with its share.
  template <class Argument>
  void launch_over(const Stream& stream, Name name, Index count, Argument argument) const {
    constexpr Index most_blocks = 4096;
    if (count > 0) launch(stream, name, std::min(parts_of(count, plain_threads), most_blocks), plain_threads, argument);
  }

  template <class T>
  void tree_sum(const Stream& stream, Name name, const std::vector<const T*>& parts, Index count, T* out) const {
    if (parts.size() > most_parts)
      throw std::invalid_argument(
          fmt::format("the GPU's tree adds at most {} parts at a time, and these are {}", most_parts, parts.size()));
    TreeSumArguments a = {};
    a.count = count;
    a.out = out;
    a.parts = static_cast<int>(parts.size());
    std::copy(parts.begin(), parts.end(), a.part);
    launch_over(stream, name, count, a);
  }
};

Kernels::Kernels(const Device& device) : module_(std::make_shared<const Module>(device)) {}

const Device& Kernels::device() const { return module_->device; }

void Kernels::product(const Stream& stream, const ChainProduct& p) const {
  if (p.rows == 0 || p.cols == 0) return;
  if (p.left_transposed || p.left_row != 0 || p.right_row != 0 || p.out_row != 0)
    throw std::invalid_argument("a product on a GPU takes whole matrices, the left one as it is");
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
  module_->launch(stream, p.precision == Precision::bf16 ? Module::chain_bf16 : Module::chain_fp32,
                  p.symmetric ? down * (down + 1) / 2 : down * across, product_threads, a);
}

void Kernels::transpose(const Stream& stream, const float* from, Index rows, Index cols, float* to) const {
  if (rows == 0 || cols == 0) return;
  module_->launch(stream, Module::transpose, parts_of(rows, transpose_tile) * parts_of(cols, transpose_tile),
                  transpose_tile * transpose_rows, TransposeArguments{rows, cols, from, to});
}

Index Kernels::sum_of_squares_room(Index count) { return std::max(Index{1}, parts_of(count, leaf_values)); }

void Kernels::sum_of_squares(const Stream& stream, const float* values, Index count, double* room) const {
  if (count == 0) return set_to_zero(stream, room, sizeof(double));
  const Index leaves = sum_of_squares_room(count);
  module_->launch(stream, Module::leaf_sums, parts_of(leaves, leaf_threads / leaf_lanes), leaf_threads,
                  LeafSumArguments{count, values, room});
  if (leaves > 1) module_->launch(stream, Module::tree_of_doubles, 1, tree_threads, TreeArguments{leaves, room});
}

void Kernels::divide(const Stream& stream, float* values, Index count, double denominator, Precision precision) const {
  module_->launch_over(stream, Module::divide, count,
                       DivideArguments{count, values, denominator, precision == Precision::bf16 ? 1 : 0});
}

void Kernels::scale_to_bf16(const Stream& stream, float scale, const float* values, Index count, float* out) const {
  module_->launch_over(stream, Module::scale_to_bf16, count, ScaleArguments{count, values, out, scale});
}

void Kernels::to_bf16(const Stream& stream, const float* values, Index count, bfloat16* out) const {
  static_assert(sizeof(bfloat16) == sizeof(unsigned short), "a bfloat16 is its 16 bits");
  module_->launch_over(stream, Module::to_bf16, count,
                       Bf16Arguments{count, values, reinterpret_cast<unsigned short*>(out)});
}

void Kernels::from_bf16(const Stream& stream, const bfloat16* values, Index count, float* out) const {
  module_->launch_over(stream, Module::from_bf16, count,
                       FloatArguments{count, reinterpret_cast<const unsigned short*>(values), out});
}

void Kernels::momentum(const Stream& stream, const float* gradient, float* momentum_buffer, Index count, float mu,
                       bool nesterov, float* update) const {
  module_->launch_over(stream, Module::momentum_step, count,
                       MomentumArguments{count, gradient, momentum_buffer, update, mu, nesterov ? 1 : 0});
}

void Kernels::apply(const Stream& stream, float* weights, const float* orthogonal, Index count, float keep,
                    float scale) const {
  module_->launch_over(stream, Module::apply_update, count, ApplyArguments{count, weights, orthogonal, keep, scale});
}

void Kernels::tree_sum(const Stream& stream, const std::vector<const float*>& parts, Index count, float* out) const {
  module_->tree_sum(stream, Module::tree_sum_fp32, parts, count, out);
}

void Kernels::tree_sum(const Stream& stream, const std::vector<const bfloat16*>& parts, Index count,
                       bfloat16* out) const {
  module_->tree_sum(stream, Module::tree_sum_bf16, parts, count, out);
}

}  // namespace muonwalk::cuda
