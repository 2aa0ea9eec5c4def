#pragma once

#include <cuda.h>

#include <string>

namespace muonwalk::cuda {

/// The functions of CUDA's driver that are used, in the version that cuda.h gives the name to (cuMemAlloc is
/// cuMemAlloc_v2, say).
#define MUONWALK_CUDA_FUNCTIONS(USE) \
  USE(cuInit)                        \
  USE(cuDriverGetVersion)            \
  USE(cuGetErrorName)                \
  USE(cuGetErrorString)              \
  USE(cuDeviceGetCount)              \
  USE(cuDeviceGet)                   \
  USE(cuDeviceGetName)               \
  USE(cuDeviceGetAttribute)          \
  USE(cuDeviceTotalMem)              \
  USE(cuDevicePrimaryCtxRetain)      \
  USE(cuDevicePrimaryCtxRelease)     \
  USE(cuCtxSetCurrent)               \
  USE(cuMemAlloc)                    \
  USE(cuMemFree)                     \
  USE(cuMemcpyAsync)                 \
  USE(cuMemcpy2DAsync)               \
  USE(cuMemsetD8Async)               \
  USE(cuPointerGetAttribute)         \
  USE(cuStreamCreate)                \
  USE(cuStreamDestroy)               \
  USE(cuStreamQuery)                 \
  USE(cuModuleLoadData)              \
  USE(cuModuleUnload)                \
  USE(cuModuleGetFunction)           \
  USE(cuLaunchKernel)

/// The driver's functions by their names. Nothing of CUDA is linked: libcuda.so.1 is opened at run time, so that one
/// program runs with and without it.
struct CudaLibrary {
/// @cond
#define MUONWALK_DECLARE(name) decltype(&::name) name = nullptr;
  MUONWALK_CUDA_FUNCTIONS(MUONWALK_DECLARE)
#undef MUONWALK_DECLARE
  /// @endcond
};

/// The driver, opened and initialized by the first call. The environment variable MUONWALK_CUDA_LIBRARY names a library
/// to open in place of libcuda.so.1, which is how tests bring theirs. A process that has called this must not fork
/// children that call it too: CUDA does not outlive a fork. Throws UsageError where there is no driver, where it is
/// older than the toolkit that this program was built with, or where it cannot start.
const CudaLibrary& cuda_library();

/// Has this process opened the driver? If not, no pointer that it holds is a device's.
bool cuda_library_is_open();

/// CUDA's own name of an error and what it says of it: "CUDA_ERROR_OUT_OF_MEMORY (out of memory)". The driver need not
/// be open.
std::string error_text(CUresult error);

/// Opens a shared library that the environment variable `variable` names, or else the first of `names` that can be
/// opened. Throws UsageError, one sentence: `purpose` ("CUDA", say) was asked for, its library can't be opened, and
/// `where_it_is` says who has it. It stays open until the process ends.
void* open_library(const char* variable, std::initializer_list<const char*> names, const std::string& purpose,
                   const std::string& where_it_is);

/// A function of an open library. Throws UsageError, one sentence, where the library has none of that name.
void* find_function(void* library, const char* name, const std::string& purpose);

}  // namespace muonwalk::cuda
