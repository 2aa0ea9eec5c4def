#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "tests/cuda/kernels_on_cpu.hpp"
#include "tests/cuda/stand_in.hpp"
#include "tests/cuda/stand_in_driver.hpp"

using namespace stand_in;

#define BEGIN(...)        \
  Call call(__VA_ARGS__); \
  Driver& d = call.d;     \
  static_cast<void>(d);   \
  if (call.error != CUDA_SUCCESS) return call.error

extern "C" {

long muonwalk_stand_in_calls(const char* function) {
  Driver& d = driver();
  const std::lock_guard<std::recursive_mutex> lock(d.mutex);
  return d.calls[function];
}

long muonwalk_stand_in_live_bytes() {
  Driver& d = driver();
  const std::lock_guard<std::recursive_mutex> lock(d.mutex);
  return static_cast<long>(live_bytes(d));
}

long muonwalk_stand_in_live_objects() {
  Driver& d = driver();
  const std::lock_guard<std::recursive_mutex> lock(d.mutex);
  return live_objects(d);
}

void muonwalk_stand_in_fail(const char* what) {
  Driver& d = driver();
  const std::lock_guard<std::recursive_mutex> lock(d.mutex);
  read_failures(d);
  plan_failures(d, what);
  d.broken = CUDA_SUCCESS;
}

void muonwalk_stand_in_thread_order(unsigned order) {
  Driver& d = driver();
  const std::lock_guard<std::recursive_mutex> lock(d.mutex);
  d.thread_order = order;
}

CUresult muonwalk_stand_in_enqueue(CUstream stream, CUresult (*work)(void*), void (*drop)(void*), void* state) {
  BEGIN("enqueue");
  OpenStream* const open = open_stream(d, stream);
  if (open == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  open->work.push_back({[=, &d] {
                          const MemoryOpen memory(d, all_memory(d));
                          return work(state);
                        },
                        [=] { drop(state); }});
  return CUDA_SUCCESS;
}

int muonwalk_stand_in_is_device_memory(const void* address, unsigned long bytes) {
  Driver& d = driver();
  const std::lock_guard<std::recursive_mutex> lock(d.mutex);
  return is_allocated(d, address, bytes) ? 1 : 0;
}

int muonwalk_stand_in_device_of(CUstream stream) {
  Driver& d = driver();
  const std::lock_guard<std::recursive_mutex> lock(d.mutex);
  OpenStream* const open = open_stream(d, stream);
  return open == nullptr ? -1 : open->device;
}

CUresult cuInit(unsigned) {
  BEGIN("cuInit", true);
  if (d.process != 0 && d.process != getpid()) return CUDA_ERROR_NOT_INITIALIZED;  // as the driver after a fork
  if (d.process == 0) start(d);
  return d.devices == 0 ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  BEGIN("cuDriverGetVersion", true);
  *version = d.version;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = texts_of(error).name;
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** words) {
  *words = texts_of(error).words;
  return *words == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  BEGIN("cuDeviceGetCount");
  *count = d.devices;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  BEGIN("cuDeviceGet");
  if (ordinal < 0 || ordinal >= d.devices || ordinal >= most_devices) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  BEGIN("cuDeviceGetName");
  std::snprintf(name, static_cast<std::size_t>(size), "stand-in %d", device);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  BEGIN("cuDeviceGetAttribute");
  *value = attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT       ? 4
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9
                                                                       : 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice) {
  BEGIN("cuDeviceTotalMem");
  *bytes = d.memory;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  BEGIN("cuDevicePrimaryCtxRetain");
  ++d.contexts[device];
  *context = reinterpret_cast<CUcontext>(static_cast<std::uintptr_t>(device) + 1);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  const Call call("cuDevicePrimaryCtxRelease");
  if (call.d.contexts[device] == 0) return CUDA_ERROR_INVALID_CONTEXT;
  --call.d.contexts[device];
  return call.error;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  BEGIN("cuCtxSetCurrent");
  const int device = static_cast<int>(reinterpret_cast<std::uintptr_t>(context)) - 1;
  if (device < 0 || device >= most_devices || d.contexts[device] == 0) return CUDA_ERROR_INVALID_CONTEXT;
  current_device = device;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  BEGIN("cuCtxGetDevice");
  if (current_device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  *device = current_device;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  BEGIN("cuMemAlloc");
  if (current_device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (d.live[current_device] + bytes > d.memory) return CUDA_ERROR_OUT_OF_MEMORY;
  // The first gap that it fits into. A page of its own, so that it can be shut when it is free, and at least 64 bytes
  // behind it to see whether they are written.
  const std::uintptr_t page = 4096, room = (bytes + 64 + page - 1) / page * page;
  std::uintptr_t at = reinterpret_cast<std::uintptr_t>(d.arena);
  for (const auto& [first, allocation] : d.allocations) {
    if (first - at >= room + page) break;
    at = first + allocation.room + page;  // a page between two is never opened
  }
  if (at + room > reinterpret_cast<std::uintptr_t>(d.arena) + arena_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  d.allocations[at] = {bytes, room, current_device};
  d.live[current_device] += bytes;
  mprotect(reinterpret_cast<void*>(at), room, PROT_READ | PROT_WRITE);
  std::memset(reinterpret_cast<void*>(at), canary, room);
  mprotect(reinterpret_cast<void*>(at), room, PROT_NONE);
  *address = at;
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
  Call call("cuMemFree");
  Driver& d = call.d;
  const auto it = d.allocations.find(address);
  if (it == d.allocations.end()) return CUDA_ERROR_INVALID_VALUE;
  // As the driver, which waits for the device; not for work that waits for another rank.
  for (auto& [handle, stream] : d.streams)
    while (step(d, *stream)) {
    }
  const auto [bytes, room, device] = it->second;
  auto* const memory = reinterpret_cast<unsigned char*>(address);
  mprotect(memory, room, PROT_READ);
  for (std::uintptr_t i = bytes; i < room; ++i) {
    if (memory[i] == canary) continue;
    std::fprintf(stderr, "stand-in for CUDA: byte %zu behind an allocation of %zu was written\n",
                 static_cast<std::size_t>(i - bytes), static_cast<std::size_t>(bytes));
    std::abort();
  }
  madvise(memory, room, MADV_DONTNEED);
  mprotect(memory, room, PROT_NONE);
  d.live[device] -= bytes;
  d.allocations.erase(it);
  return call.error;
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  BEGIN("cuMemcpyAsync");
  auto* const out = reinterpret_cast<void*>(to);
  const auto* const in = reinterpret_cast<const void*>(from);
  if (!may_be_copied(d, out, bytes) || !may_be_copied(d, in, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return hand_in(call, stream, [=, &d] {
    if (!may_be_copied(d, out, bytes) || !may_be_copied(d, in, bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const MemoryOpen memory(d, {out, in});
    std::memmove(out, in, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* copy, CUstream stream) {
  BEGIN("cuMemcpy2DAsync");
  const CUDA_MEMCPY2D c = *copy;
  if (c.srcMemoryType != CU_MEMORYTYPE_UNIFIED || c.dstMemoryType != CU_MEMORYTYPE_UNIFIED ||
      c.WidthInBytes > c.srcPitch || c.WidthInBytes > c.dstPitch || c.Height == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const std::uintptr_t reads = c.srcPitch * (c.Height - 1) + c.WidthInBytes;
  const std::uintptr_t writes = c.dstPitch * (c.Height - 1) + c.WidthInBytes;
  auto* const out = reinterpret_cast<unsigned char*>(c.dstDevice);
  const auto* const in = reinterpret_cast<const unsigned char*>(c.srcDevice);
  if (!may_be_copied(d, out, writes) || !may_be_copied(d, in, reads)) return CUDA_ERROR_INVALID_VALUE;
  return hand_in(call, stream, [=, &d] {
    if (!may_be_copied(d, out, writes) || !may_be_copied(d, in, reads)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const MemoryOpen memory(d, {out, in});
    for (std::size_t row = 0; row < c.Height; ++row)
      std::memmove(out + row * c.dstPitch, in + row * c.srcPitch, c.WidthInBytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes, CUstream stream) {
  BEGIN("cuMemsetD8Async");
  auto* const out = reinterpret_cast<void*>(address);
  if (!is_allocated(d, out, bytes)) return CUDA_ERROR_INVALID_VALUE;
  return hand_in(call, stream, [=, &d] {
    if (!is_allocated(d, out, bytes)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const MemoryOpen memory(d, {out});
    std::memset(out, value, bytes);
    return CUDA_SUCCESS;
  });
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  BEGIN("cuPointerGetAttribute");
  if (!is_allocated(d, reinterpret_cast<const void*>(address), 1)) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
    *static_cast<unsigned*>(data) = CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
  }
  if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
    *static_cast<int*>(data) = std::prev(d.allocations.upper_bound(address))->second.device;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  BEGIN("cuStreamCreate");
  if (current_device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  auto open = std::make_unique<OpenStream>();
  open->device = current_device;
  OpenStream* const handle = open.get();
  d.streams[handle] = std::move(open);
  *stream = reinterpret_cast<CUstream>(handle);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream) {
  Call call("cuStreamDestroy");
  OpenStream* const open = open_stream(call.d, stream);
  if (open == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  while (step(call.d, *open)) {
  }
  for (const Work& work : open->work) work.drop();
  call.d.streams.erase(open);
  return call.error;
}

CUresult cuStreamQuery(CUstream stream) {
  BEGIN("cuStreamQuery");
  OpenStream* const open = open_stream(d, stream);
  if (open == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (open->work.empty()) return CUDA_SUCCESS;
  step(d, *open);
  return d.broken != CUDA_SUCCESS ? d.broken : CUDA_ERROR_NOT_READY;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  BEGIN("cuModuleLoadData");
  if (current_device < 0) return CUDA_ERROR_INVALID_CONTEXT;
  const unsigned char magic[] = {0x50, 0xed, 0x55, 0xba};  // how a fat binary of nvcc's begins
  if (std::memcmp(image, magic, sizeof(magic)) != 0) return CUDA_ERROR_INVALID_IMAGE;
  static std::uintptr_t modules = 0;
  *module = reinterpret_cast<CUmodule>(++modules);
  d.modules.insert(*module);
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  const Call call("cuModuleUnload");
  return call.d.modules.erase(module) == 0 ? CUDA_ERROR_INVALID_HANDLE : call.error;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  BEGIN("cuModuleGetFunction");
  if (d.modules.count(module) == 0) return CUDA_ERROR_INVALID_HANDLE;
  const KernelOnCpu* const kernel = kernel_on_cpu(name);
  if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
  *function = reinterpret_cast<CUfunction>(const_cast<KernelOnCpu*>(kernel));
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned, CUstream stream, void** arguments, void**) {
  BEGIN("cuLaunchKernel");
  const auto& kernel = *reinterpret_cast<const KernelOnCpu*>(function);
  if (grid_x == 0 || grid_y == 0 || grid_z == 0 || grid_y > 65535 || grid_z > 65535 ||
      std::uint64_t{block_x} * block_y * block_z - 1 >= 1024)
    return CUDA_ERROR_INVALID_VALUE;
  return hand_in(call, stream, [=, &d, bound = kernel.bind(arguments)] {
    for (const void* const address : bound.addresses)
      if (address != nullptr && !is_allocated(d, address, 0)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    const MemoryOpen memory(d, bound.addresses);
    const unsigned grid[3] = {grid_x, grid_y, grid_z}, block[3] = {block_x, block_y, block_z};
    return run_blocks(bound, grid, block, d.thread_order) ? CUDA_SUCCESS : CUDA_ERROR_LAUNCH_FAILED;
  });
}
}
