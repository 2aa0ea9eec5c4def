#pragma once

// What tests ask of the stand-in for NCCL that they have loaded, besides NCCL's own calls.

#include <dlfcn.h>

#include <cstdlib>

namespace muonwalk::testing {

/// A function of the stand-in for NCCL; null where this process has not loaded it.
template <class Function>
Function of_nccl_stand_in(const char* name) {
  void* library = dlopen(std::getenv("MUONWALK_NCCL_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  return library != nullptr ? reinterpret_cast<Function>(dlsym(library, name)) : nullptr;
}

/// How often the process has called this function: "ncclSend".
inline long long calls_of_nccl(const char* call) {
  const auto count = of_nccl_stand_in<long long (*)(const char*)>("muonwalk_stand_in_nccl_calls");
  return count != nullptr ? count(call) : 0;
}

/// Communicators that were neither destroyed nor aborted.
inline long long live_communicators() {
  const auto count = of_nccl_stand_in<long long (*)()>("muonwalk_stand_in_nccl_live");
  return count != nullptr ? count() : 0;
}

/// Groups of calls that the calling thread has begun and not ended.
inline int open_groups() {
  const auto count = of_nccl_stand_in<int (*)()>("muonwalk_stand_in_nccl_open_groups");
  return count != nullptr ? count() : 0;
}

}  // namespace muonwalk::testing
