#pragma once

#include <memory>

#include "src/cuda/device.hpp"

namespace muonwalk::cuda {

/// NVIDIA's library of matrix products, opened at run time (libcublas.so of CUDA's major version, or what the
/// environment variable MUONWALK_CUBLAS_LIBRARY names) and set up for one device. A handle: copies are the same.
class Cublas {
 public:
  /// Throws UsageError where there is no such library, RunError where it fails.
  explicit Cublas(const Device& device);

  /// out = scale · left · right + out_scale · out, all row-major: left rows × depth; right depth × cols or, if
  /// transposed, cols × depth; out rows × cols. T is float, multiplied as such (no TF32), or bfloat16; sums are float32
  /// in an order that is cuBLAS's own. Throws RunError where a call fails, and std::invalid_argument for a size beyond
  /// 2³¹ − 1, which cuBLAS counts with.
  template <class T>
  void product(const Stream& stream, Index rows, Index cols, Index depth, float scale, const T* left, const T* right,
               bool right_transposed, float out_scale, T* out) const;

 private:
  struct Handle;
  std::shared_ptr<const Handle> handle_;
};

}  // namespace muonwalk::cuda
