// The stand-in for cuBLAS: products of floats and bfloat16 on the stand-in for CUDA's driver, added in double
// precision.

#include <cublas_v2.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/cuda/stand_in.hpp"

namespace {

struct Handle {
  CUstream stream = nullptr;
};

struct Product {
  cublasOperation_t of_a, of_b;
  int m, n, k;
  float alpha, beta;
  const void *a, *b;
  void* c;
  cudaDataType type;
  int lda, ldb, ldc;
};

double element(const void* matrix, cudaDataType type, std::ptrdiff_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(matrix)[at];
  const std::uint32_t bits = std::uint32_t{static_cast<const std::uint16_t*>(matrix)[at]} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void set_element(void* matrix, cudaDataType type, std::ptrdiff_t at, double value) {
  const auto rounded = static_cast<float>(value);
  if (type == CUDA_R_32F) {
    static_cast<float*>(matrix)[at] = rounded;
    return;
  }
  std::uint32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  static_cast<std::uint16_t*>(matrix)[at] = static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Column by column, as cuBLAS has it.
CUresult multiply(void* state) {
  const Product& p = *static_cast<Product*>(state);
  const auto at = [](cublasOperation_t of, int row, int col, int ld) {
    return of == CUBLAS_OP_N ? std::ptrdiff_t{row} + std::ptrdiff_t{col} * ld
                             : std::ptrdiff_t{col} + std::ptrdiff_t{row} * ld;
  };
  for (int j = 0; j < p.n; ++j) {
    for (int i = 0; i < p.m; ++i) {
      double sum = 0;
      for (int l = 0; l < p.k; ++l)
        sum += element(p.a, p.type, at(p.of_a, i, l, p.lda)) * element(p.b, p.type, at(p.of_b, l, j, p.ldb));
      const std::ptrdiff_t c = std::ptrdiff_t{i} + std::ptrdiff_t{j} * p.ldc;
      set_element(p.c, p.type, c, p.alpha * sum + (p.beta == 0 ? 0.0 : p.beta * element(p.c, p.type, c)));
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = reinterpret_cast<cublasHandle_t>(new Handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete reinterpret_cast<Handle*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  reinterpret_cast<Handle*>(handle)->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE    ? "CUBLAS_STATUS_INVALID_VALUE"
         : status == CUBLAS_STATUS_NOT_SUPPORTED  ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == CUBLAS_STATUS_INTERNAL_ERROR ? "CUBLAS_STATUS_INTERNAL_ERROR"
                                                  : "CUBLAS_STATUS_EXECUTION_FAILED";
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t of_a, cublasOperation_t of_b, int m, int n, int k,
                            const void* alpha, const void* a, cudaDataType type_a, int lda, const void* b,
                            cudaDataType type_b, int ldb, const void* beta, void* c, cudaDataType type_c, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (m < 0 || n < 0 || k < 0 || lda < (of_a == CUBLAS_OP_N ? m : k) || ldb < (of_b == CUBLAS_OP_N ? k : n) || ldc < m)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (compute != CUBLAS_COMPUTE_32F || type_a != type_b || type_a != type_c ||
      (type_a != CUDA_R_32F && type_a != CUDA_R_16BF))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const unsigned long size = type_a == CUDA_R_32F ? 4 : 2;
  const auto covers = [&](const void* matrix, int rows, int cols, int ld) {
    const auto elements =
        static_cast<unsigned long>(ld) * static_cast<unsigned long>(cols - 1) + static_cast<unsigned long>(rows);
    return muonwalk_stand_in_is_device_memory(matrix, size * elements) != 0;
  };
  if (!covers(a, of_a == CUBLAS_OP_N ? m : k, of_a == CUBLAS_OP_N ? k : m, lda) ||
      !covers(b, of_b == CUBLAS_OP_N ? k : n, of_b == CUBLAS_OP_N ? n : k, ldb) || !covers(c, m, n, ldc))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  auto* const product =
      new Product{of_a, of_b,   m,   n,   k,  *static_cast<const float*>(alpha), *static_cast<const float*>(beta), a, b,
                  c,    type_a, lda, ldb, ldc};
  const CUresult result = muonwalk_stand_in_enqueue(
      reinterpret_cast<Handle*>(handle)->stream, multiply, [](void* state) { delete static_cast<Product*>(state); },
      product);
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INTERNAL_ERROR;
}
}
