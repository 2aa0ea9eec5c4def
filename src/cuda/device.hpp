#pragma once

#include <cuda.h>

#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "src/cuda/cuda_library.hpp"
#include "src/cuda/queue_observer.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk::cuda {

/// A GPU that this process computes on, and the context that it has there (the primary one, which cuBLAS and NCCL use
/// too). A handle: copies are the same device. The context is given back when the last of them, and of what was made
/// with them, is gone.
class Device {
 public:
  /// The GPUs that CUDA shows this process. Throws UsageError where CUDA can't be used at all.
  static int count();

  /// Opens GPU number `ordinal`. `holder`, where given, begins every error: "rank 3". Throws UsageError where there is
  /// no such GPU.
  explicit Device(int ordinal, const std::string& holder = "");

  int ordinal() const;
  /// Its name, as the driver has it: "NVIDIA H200".
  const std::string& name() const;
  /// One of its properties, as cuDeviceGetAttribute tells them.
  int attribute(CUdevice_attribute attribute) const;
  Index total_memory() const;  ///< Bytes.

  /// Makes its context the calling thread's, as calls to CUDA's libraries need it. This room does so by itself.
  void make_current() const;
  /// Makes it current in a destructor: without a word where that fails.
  void make_current_quietly() const noexcept;

  /// Throws RunError, one sentence with holder, call, device and CUDA's name of the error, unless `result` is a
  /// success. `call` is what was called, perhaps with a word on its arguments: "cuMemAlloc of 64 bytes".
  void check(CUresult result, const std::string& call) const;
  /// Throws that sentence for a library on top of CUDA: `error` is the library's name of the error.
  [[noreturn]] void fail(const std::string& call, const std::string& error) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

/// Work for a device, done in order. It is handed in and goes on while the host does something else.
class Stream {
 public:
  /// `name` is whose it is, for a QueueObserver. Throws RunError where the device gives none.
  explicit Stream(const Device& device, const std::string& name = "");
  ~Stream();
  Stream(Stream&& other) noexcept
      : device_(other.device_), name_(std::move(other.name_)), handle_(std::exchange(other.handle_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;

  const Device& device() const { return device_; }
  /// The driver's name for it, which libraries on top of CUDA take too.
  CUstream handle() const { return handle_; }
  const std::string& name() const { return name_; }

  /// Is all done that was handed in? Throws RunError where any of it has failed: asynchronous errors are told here.
  bool finished() const;
  /// Asks until all is done. Throws RunError as `finished` does.
  void wait() const;
  /// Waits without a word until nothing of it is under way any more, done or failed: for an error's way out, before
  /// memory of the host goes that copies still use.
  void drain() const noexcept;

 private:
  Device device_;
  std::string name_;
  CUstream handle_ = nullptr;
};

/// `bytes` bytes of a device's memory with no definite content; null for 0. The host must not read or write there. They
/// are given back when the last copy of the pointer goes. `meter`, where given, counts them as `elements` held by a
/// rank, and must outlive them. Throws RunError where the device has no room.
std::shared_ptr<void> device_memory(const Device& device, Index bytes, MemoryMeter* meter = nullptr,
                                    Index elements = 0);

/// An array on a device, which owns it and frees it at its end; work on a stream that uses it must be done by then.
template <class T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>, "a device's memory holds plain values");

 public:
  DeviceArray() = default;
  /// `size` elements of no definite value. `meter`, where given, counts them as it counts a Flat's.
  DeviceArray(const Device& device, Index size, MemoryMeter* meter = nullptr)
      : memory_(device_memory(device, size * Index{sizeof(T)}, meter, size)), size_(size) {}
  DeviceArray(DeviceArray&& other) noexcept { *this = std::move(other); }
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, Index{0});
    return *this;
  }

  Index size() const { return size_; }
  /// The address on the device: for kernels and copies, not to be looked into by the host.
  /// @{
  T* data() { return static_cast<T*>(memory_.get()); }
  const T* data() const { return static_cast<const T*>(memory_.get()); }
  /// @}

 private:
  std::shared_ptr<void> memory_;
  Index size_ = 0;
};

/// Copies between host and device, or within either: the addresses say which. The work is handed to the stream: host
/// memory must stay as it is, and must not be read, until the stream has been waited for.
/// @{
void copy_bytes(const Stream& stream, void* to, const void* from, Index bytes);

/// `count` elements.
template <class T>
void copy(const Stream& stream, T* to, const T* from, Index count) {
  copy_bytes(stream, to, from, count * Index{sizeof(T)});
}

/// `count` elements from a device to the host, which has them when this returns. Where it throws, `to` is not written
/// to any more.
template <class T>
void copy_to_host(const Stream& stream, T* to, const T* from, Index count) {
  try {
    copy(stream, to, from, count);
    stream.wait();
  } catch (...) {
    stream.drain();
    throw;
  }
}

/// `rows` rows of `cols` elements that begin every `to_stride` and `from_stride` elements: a slice of columns into a
/// whole matrix, or out of one.
void copy_rows(const Stream& stream, float* to, Index to_stride, const float* from, Index from_stride, Index rows,
               Index cols);
/// @}

/// Sets `bytes` bytes of device memory to zero, in the stream's order.
void set_to_zero(const Stream& stream, void* memory, Index bytes);

/// Does this address lie in a device's memory? False, without a question to CUDA, where this process has not opened it.
bool is_device_pointer(const void* address);

/// In which device's memory an address lies, by its number, as the driver has it; nothing for the host's memory.
std::optional<int> device_of(const void* address);

}  // namespace muonwalk::cuda
