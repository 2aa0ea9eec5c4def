#pragma once

// A device, its kernels and a stream, and how a test's numbers come there and back.

#include <dlfcn.h>

#include "src/cuda/kernels.hpp"

namespace muonwalk::cuda {

struct OnDevice {
  Device device{0};
  Kernels kernels{device};
  Stream stream{device};

  template <class T>
  DeviceArray<T> room(Index count) const {
    return DeviceArray<T>(device, count);
  }
  template <class Values>
  DeviceArray<typename Values::value_type> uploaded(const Values& values) const {
    auto there = room<typename Values::value_type>(static_cast<Index>(values.size()));
    copy(stream, there.data(), values.data(), there.size());
    stream.wait();
    return there;
  }
  template <class T>
  FlatOf<T> downloaded(const DeviceArray<T>& there) const {
    FlatOf<T> values(static_cast<std::size_t>(there.size()));
    copy(stream, values.data(), there.data(), there.size());
    stream.wait();
    return values;
  }
};

/// With the stand-in: muonwalk_stand_in_thread_order. A GPU has its own.
inline void run_threads_in_order(unsigned order) {
  using Function = void (*)(unsigned);
  static const auto function = reinterpret_cast<Function>(
      dlsym(open_library("MUONWALK_CUDA_LIBRARY", {"libcuda.so.1"}, "CUDA", ""), "muonwalk_stand_in_thread_order"));
  if (function != nullptr) function(order);
}

}  // namespace muonwalk::cuda
