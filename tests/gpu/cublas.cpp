#include "tests/gpu/cublas.hpp"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>
#include <type_traits>

#include "src/errors.hpp"
#include "src/numerics/bfloat16.hpp"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define MUONWALK_HAS_CUBLAS_HEADER
#endif

namespace muonwalk::cuda {

#ifdef MUONWALK_HAS_CUBLAS_HEADER

namespace {

struct CublasLibrary {
  decltype(&::cublasCreate_v2) create = nullptr;
  decltype(&::cublasDestroy_v2) destroy = nullptr;
  decltype(&::cublasSetStream_v2) set_stream = nullptr;
  decltype(&::cublasGetStatusName) status_name = nullptr;
  // In C++ its header overloads this one.
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int, const void*, const void*,
                         cudaDataType, int, const void*, cudaDataType, int, const void*, void*, cudaDataType, int,
                         cublasComputeType_t, cublasGemmAlgo_t) = nullptr;
};

CublasLibrary open_cublas() {
  void* const handle = open_library("MUONWALK_CUBLAS_LIBRARY", {"libcublas.so.13", "libcublas.so.12"}, "cuBLAS",
                                    "NVIDIA's CUDA toolkit brings it, and the chain engine needs none");
  CublasLibrary library;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(find_function(handle, name, "cuBLAS"));
  };
  find(library.create, "cublasCreate_v2");
  find(library.destroy, "cublasDestroy_v2");
  find(library.set_stream, "cublasSetStream_v2");
  find(library.status_name, "cublasGetStatusName");
  find(library.gemm, "cublasGemmEx");
  return library;
}

const CublasLibrary& cublas_library() {
  static const CublasLibrary library = open_cublas();
  return library;
}

template <class T>
constexpr cudaDataType type_of = CUDA_R_32F;
template <>
constexpr cudaDataType type_of<bfloat16> = CUDA_R_16BF;

int as_int(Index size) {
  if (size > std::numeric_limits<int>::max())
    throw std::invalid_argument(fmt::format("cuBLAS counts rows and columns to 2147483647, and {} are more", size));
  return static_cast<int>(size);
}

}  // namespace

struct Cublas::Handle {
  Device device;
  cublasHandle_t handle = nullptr;

  explicit Handle(const Device& its_device) : device(its_device) {
    device.make_current();
    check(cublas_library().create(&handle), "cublasCreate");
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    device.make_current_quietly();
    if (handle != nullptr) cublas_library().destroy(handle);
  }
  void check(cublasStatus_t status, const char* call) const {
    if (status != CUBLAS_STATUS_SUCCESS) device.fail(call, cublas_library().status_name(status));
  }
};

Cublas::Cublas(const Device& device) : handle_(std::make_shared<const Handle>(device)) {}

// cuBLAS counts down columns. What lies in memory row by row is to it the transpose: so it is asked for outᵀ = rightᵀ
// leftᵀ, and finds the transposes of both factors where the factors lie.
template <class T>
void Cublas::product(const Stream& stream, Index rows, Index cols, Index depth, float scale, const T* left,
                     const T* right, bool right_transposed, float out_scale, T* out) const {
  if (rows == 0 || cols == 0) return;
  const CublasLibrary& library = cublas_library();
  handle_->device.make_current();
  handle_->check(library.set_stream(handle_->handle, stream.handle()), "cublasSetStream");
  const Index right_row = right_transposed ? depth : cols;
  handle_->check(
      library.gemm(handle_->handle, right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, as_int(cols),
                   as_int(rows), as_int(depth), &scale, right, type_of<T>, as_int(right_row), left, type_of<T>,
                   as_int(depth), &out_scale, out, type_of<T>, as_int(cols), CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
      "cublasGemmEx");
}

#else

struct Cublas::Handle {};

Cublas::Cublas(const Device&) {
  throw UsageError(
      "cuBLAS was asked for, and this program was built without its header cublas_v2.h; the chain engine, "
      "or a build with NVIDIA's whole toolkit, works");
}

template <class T>
void Cublas::product(const Stream&, Index, Index, Index, float, const T*, const T*, bool, float, T*) const {}

#endif

template void Cublas::product(const Stream&, Index, Index, Index, float, const float*, const float*, bool, float,
                              float*) const;
template void Cublas::product(const Stream&, Index, Index, Index, float, const bfloat16*, const bfloat16*, bool, float,
                              bfloat16*) const;

}  // namespace muonwalk::cuda
