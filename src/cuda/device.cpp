#include "src/cuda/device.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "src/errors.hpp"

namespace muonwalk::cuda {
namespace {

CUdeviceptr as_device_pointer(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

void check_asked(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS)
    throw UsageError(
        fmt::format("a GPU was asked for, and CUDA does not give it: {} says {}; a run without a GPU works", call,
                    error_text(result)));
}

// Where both ends lie, the driver is asked only where somebody wants to know.
void tell_copied(const Stream& stream, const void* to, const void* from, Index bytes) {
  if (!queue_is_observed()) return;
  const bool to_device = is_device_pointer(to), from_device = is_device_pointer(from);
  const Queued between = to_device && !from_device   ? Queued::copy_to_device
                         : from_device && !to_device ? Queued::copy_to_host
                                                     : Queued::copy_on_device;
  tell_queued(stream, between, bytes);
}

}  // namespace

struct Device::State {
  int ordinal = 0;
  std::string holder;
  std::string name;
  CUdevice device = 0;
  CUcontext context = nullptr;
  Index total_memory = 0;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (context != nullptr) cuda_library().cuDevicePrimaryCtxRelease(device);
  }
};

int Device::count() {
  int count = 0;
  check_asked(cuda_library().cuDeviceGetCount(&count), "cuDeviceGetCount");
  return count;
}

Device::Device(int ordinal, const std::string& holder) {
  const int devices = count();
  if (devices == 0)
    throw UsageError(
        "a GPU was asked for, and CUDA shows none to this process (CUDA_VISIBLE_DEVICES may hide them); "
        "a run without a GPU works");
  if (ordinal < 0 || ordinal >= devices)
    throw UsageError(fmt::format("GPU number {} was asked for, and CUDA shows {} of them: 0 to {} work", ordinal,
                                 devices, devices - 1));
  const CudaLibrary& library = cuda_library();
  auto state = std::make_shared<State>();
  state->ordinal = ordinal;
  state->holder = holder;
  check_asked(library.cuDeviceGet(&state->device, ordinal), "cuDeviceGet");
  char name[256] = {};
  check_asked(library.cuDeviceGetName(name, sizeof(name) - 1, state->device), "cuDeviceGetName");
  state->name = name;
  std::size_t bytes = 0;
  check_asked(library.cuDeviceTotalMem(&bytes, state->device), "cuDeviceTotalMem");
  state->total_memory = static_cast<Index>(bytes);
  CUcontext context = nullptr;
  state_ = state;
  check(library.cuDevicePrimaryCtxRetain(&context, state->device), "cuDevicePrimaryCtxRetain");
  state->context = context;
}

int Device::ordinal() const { return state_->ordinal; }

const std::string& Device::name() const { return state_->name; }

int Device::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  check(cuda_library().cuDeviceGetAttribute(&value, attribute, state_->device), "cuDeviceGetAttribute");
  return value;
}

Index Device::total_memory() const { return state_->total_memory; }

void Device::make_current() const { check(cuda_library().cuCtxSetCurrent(state_->context), "cuCtxSetCurrent"); }

void Device::make_current_quietly() const noexcept { cuda_library().cuCtxSetCurrent(state_->context); }

void Device::check(CUresult result, const std::string& call) const {
  if (result != CUDA_SUCCESS) fail(call, error_text(result));
}

void Device::fail(const std::string& call, const std::string& error) const {
  throw RunError(fmt::format("{}{}{} failed on device {} ({}): {}", state_->holder, state_->holder.empty() ? "" : ": ",
                             call, state_->ordinal, state_->name, error));
}

Stream::Stream(const Device& device, const std::string& name) : device_(device), name_(name) {
  device_.make_current();
  // Non-blocking: the legacy default stream, which nobody here uses, must not make it wait.
  device_.check(cuda_library().cuStreamCreate(&handle_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

Stream::~Stream() {
  if (handle_ == nullptr) return;
  device_.make_current_quietly();
  cuda_library().cuStreamDestroy(handle_);
}

bool Stream::finished() const {
  const CUresult result = cuda_library().cuStreamQuery(handle_);
  if (result == CUDA_ERROR_NOT_READY) return false;
  device_.check(result, "cuStreamQuery (work that was handed in before)");
  return true;
}

void Stream::wait() const {
  device_.make_current();
  tell_waits(*this);
  // Most waits are short. After a long one, a rank that waits for another leaves the processor to it.
  constexpr int busy_polls = 2000;
  for (int poll = 0; !finished(); ++poll)
    if (poll >= busy_polls) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Stream::drain() const noexcept {
  device_.make_current_quietly();
  while (cuda_library().cuStreamQuery(handle_) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
}

std::shared_ptr<void> device_memory(const Device& device, Index bytes, MemoryMeter* meter, Index elements) {
  const std::string call = fmt::format("cuMemAlloc of {} bytes", bytes);
  if (bytes < 0) device.fail(call, "no size of memory is negative");
  if (bytes == 0) return nullptr;
  device.make_current();
  CUdeviceptr address = 0;
  const CUresult result = cuda_library().cuMemAlloc(&address, static_cast<std::size_t>(bytes));
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    device.fail(call,
                fmt::format("{}; the device has {} bytes in all, so a smaller model, more ranks that share it, or "
                            "a device that nobody else uses may work",
                            error_text(result), device.total_memory()));
  device.check(result, call);
  if (meter != nullptr) meter->add(elements, bytes);
  return {reinterpret_cast<void*>(address), [=](void* memory) {
            if (meter != nullptr) meter->remove(elements, bytes);
            // A failure here is an older one's echo: after an asynchronous error every call fails, and the wait has
            // told it.
            device.make_current_quietly();
            cuda_library().cuMemFree(as_device_pointer(memory));
          }};
}

void copy_bytes(const Stream& stream, void* to, const void* from, Index bytes) {
  if (bytes == 0) return;
  const Device& device = stream.device();
  device.make_current();
  device.check(cuda_library().cuMemcpyAsync(as_device_pointer(to), as_device_pointer(from),
                                            static_cast<std::size_t>(bytes), stream.handle()),
               fmt::format("cuMemcpyAsync of {} bytes", bytes));
  tell_copied(stream, to, from, bytes);
}

void copy_rows(const Stream& stream, float* to, Index to_stride, const float* from, Index from_stride, Index rows,
               Index cols) {
  if (rows == 0 || cols == 0) return;
  if (rows == 1 || (cols == to_stride && cols == from_stride)) return copy(stream, to, from, rows * cols);
  const auto bytes = [](Index elements) { return static_cast<std::size_t>(elements) * sizeof(float); };
  CUDA_MEMCPY2D copy = {};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = as_device_pointer(from);
  copy.srcPitch = bytes(from_stride);
  copy.dstDevice = as_device_pointer(to);
  copy.dstPitch = bytes(to_stride);
  copy.WidthInBytes = bytes(cols);
  copy.Height = static_cast<std::size_t>(rows);
  const Device& device = stream.device();
  device.make_current();
  device.check(cuda_library().cuMemcpy2DAsync(&copy, stream.handle()),
               fmt::format("cuMemcpy2DAsync of {} rows of {} bytes", rows, copy.WidthInBytes));
  tell_copied(stream, to, from, rows * cols * Index{sizeof(float)});
}

void set_to_zero(const Stream& stream, void* memory, Index bytes) {
  if (bytes == 0) return;
  const Device& device = stream.device();
  device.make_current();
  device.check(
      cuda_library().cuMemsetD8Async(as_device_pointer(memory), 0, static_cast<std::size_t>(bytes), stream.handle()),
      fmt::format("cuMemsetD8Async of {} bytes", bytes));
  tell_queued(stream, Queued::set, bytes);
}

bool is_device_pointer(const void* address) {
  if (address == nullptr || !cuda_library_is_open()) return false;
  unsigned type = 0;  // stays so for memory that CUDA has never heard of, which is an error
  const CUresult result =
      cuda_library().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, as_device_pointer(address));
  return result == CUDA_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
}

std::optional<int> device_of(const void* address) {
  if (!is_device_pointer(address)) return std::nullopt;
  int ordinal = 0;
  const CUresult result =
      cuda_library().cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, as_device_pointer(address));
  if (result != CUDA_SUCCESS)
    throw RunError(fmt::format("cuPointerGetAttribute (device ordinal) failed: {}", error_text(result)));
  return ordinal;
}

}  // namespace muonwalk::cuda
