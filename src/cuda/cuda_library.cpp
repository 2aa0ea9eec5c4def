#include "src/cuda/cuda_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <initializer_list>

#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::cuda {
namespace {

std::atomic<const CudaLibrary*> open_driver{nullptr};

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string text_of(const CudaLibrary& library, CUresult error) {
  const char *name = nullptr, *words = nullptr;
  if (library.cuGetErrorName(error, &name) != CUDA_SUCCESS || name == nullptr)
    return fmt::format("error {}", static_cast<int>(error));
  if (library.cuGetErrorString(error, &words) != CUDA_SUCCESS || words == nullptr) return name;
  return fmt::format("{} ({})", name, words);
}

// A driver runs what a toolkit of its own major version, or of an older one, has made.
void refuse_old_driver(const CudaLibrary& library) {
  int version = 0;
  const CUresult result = library.cuDriverGetVersion(&version);
  if (result != CUDA_SUCCESS)
    throw UsageError("a GPU was asked for, and CUDA's driver does not tell its version: cuDriverGetVersion says " +
                     text_of(library, result) + "; a run without a GPU works");
  if (version / 1000 < CUDA_VERSION / 1000)
    throw UsageError(fmt::format(
        "this program was built with CUDA {}, and the driver of this machine knows CUDA {} and older; a newer driver, "
        "or a build with a toolkit of CUDA {}, works",
        version_text(CUDA_VERSION), version_text(version), version / 1000));
}

CudaLibrary open_and_initialize() {
  void* const handle = open_library("MUONWALK_CUDA_LIBRARY", {"libcuda.so.1"}, "CUDA",
                                    "NVIDIA's driver brings it, on a machine with one of its GPUs");
  CudaLibrary library;
#define MUONWALK_TEXT(name) #name
#define MUONWALK_NAME(name) MUONWALK_TEXT(name)
#define MUONWALK_FIND(name) \
  library.name = reinterpret_cast<decltype(library.name)>(find_function(handle, MUONWALK_NAME(name), "CUDA"));
  MUONWALK_CUDA_FUNCTIONS(MUONWALK_FIND)
#undef MUONWALK_FIND
#undef MUONWALK_NAME
#undef MUONWALK_TEXT
  const CUresult result = library.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE)
    throw UsageError("a GPU was asked for, and CUDA's driver finds none on this machine: cuInit says " +
                     text_of(library, result) + "; a machine with one of NVIDIA's GPUs, or a run without a GPU, works");
  if (result != CUDA_SUCCESS)
    throw UsageError("a GPU was asked for, and CUDA's driver cannot start: cuInit says " + text_of(library, result) +
                     "; nvidia-smi may say why, and a run without a GPU works");
  refuse_old_driver(library);
  return library;
}

}  // namespace

void* open_library(const char* variable, std::initializer_list<const char*> names, const std::string& purpose,
                   const std::string& where_it_is) {
  const char* const named = std::getenv(variable);
  std::string tried;
  const auto open = [&](const char* name) {
    void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr && tried.empty()) tried = as_typed(dlerror());
    return handle;
  };
  if (named != nullptr) {
    if (void* const handle = open(named)) return handle;
    throw UsageError(fmt::format("{}={} names no library that can be opened ({}); leave it unset for the system's own",
                                 variable, as_typed(named), tried));
  }
  for (const char* name : names) {
    if (void* const handle = open(name)) return handle;
  }
  throw UsageError(
      fmt::format("{} was asked for, and its library can't be opened ({}); {}", purpose, tried, where_it_is));
}

void* find_function(void* library, const char* name, const std::string& purpose) {
  if (void* const function = dlsym(library, name)) return function;
  throw UsageError(
      fmt::format("{} was asked for, and its library has no function {}: it is too old for this program, "
                  "or another library; a newer one works",
                  purpose, name));
}

const CudaLibrary& cuda_library() {
  static const CudaLibrary library = open_and_initialize();
  open_driver = &library;
  return library;
}

bool cuda_library_is_open() { return open_driver != nullptr; }

std::string error_text(CUresult error) {
  const CudaLibrary* const library = open_driver;
  return library == nullptr ? fmt::format("error {}", static_cast<int>(error)) : text_of(*library, error);
}

}  // namespace muonwalk::cuda
