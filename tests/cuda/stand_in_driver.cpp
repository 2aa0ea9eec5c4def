#include "tests/cuda/stand_in_driver.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>

namespace stand_in {
namespace {

const struct KnownError {
  CUresult error;
  const char *name, *words;
} errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

CUresult error_of(const std::string& name) {
  for (const auto& known : errors)
    if (name == known.name) return known.error;
  std::fprintf(stderr, "stand-in for CUDA: it knows no error %s\n", name.c_str());
  std::abort();
}

void leave_report() {
  Driver& d = driver();
  if (d.process != getpid()) return;
  std::FILE* const file = std::fopen((d.report + "/" + std::to_string(getpid()) + ".txt").c_str(), "w");
  if (file == nullptr) return;
  for (const auto& [name, count] : d.calls) std::fprintf(file, "%s %ld\n", name.c_str(), count);
  std::fprintf(file, "live %zu\nobjects %ld\n", static_cast<std::size_t>(live_bytes(d)), live_objects(d));
  std::fclose(file);
}

bool in_arena(const Driver& d, const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address), first = reinterpret_cast<std::uintptr_t>(d.arena);
  return d.arena != nullptr && at >= first && at < first + arena_bytes;
}

void set_protection(const std::map<std::uintptr_t, std::uintptr_t>& memory, int protection) {
  for (const auto& [first, room] : memory) mprotect(reinterpret_cast<void*>(first), room, protection);
}

}  // namespace

thread_local int current_device = -1;

Driver& driver() {
  static Driver* const one = new Driver;  // never destroyed: others' destructors may still call
  return *one;
}

ErrorTexts texts_of(CUresult error) {
  for (const KnownError& known : errors)
    if (known.error == error) return {known.name, known.words};
  return {};
}

void plan_failures(Driver& d, const char* what) {
  d.failures.clear();
  std::istringstream all(what);
  for (std::string one; std::getline(all, one, ',');) {
    std::istringstream parts(one);
    std::string call, number, error, later;
    std::getline(parts, call, ':');
    std::getline(parts, number, ':');
    std::getline(parts, error, ':');
    std::getline(parts, later, ':');
    d.failures[call].push_back({std::stol(number) - 1, error_of(error), later == "later"});
  }
}

long live_objects(const Driver& d) {
  long count = static_cast<long>(d.streams.size() + d.modules.size());
  for (const int retained : d.contexts) count += retained;
  return count;
}

std::uintptr_t live_bytes(const Driver& d) {
  std::uintptr_t bytes = 0;
  for (const std::uintptr_t on_one : d.live) bytes += on_one;
  return bytes;
}

void start(Driver& d) {
  const auto number = [](const char* name, long otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::atol(text);
  };
  d.process = getpid();
  d.devices = static_cast<int>(number("MUONWALK_STAND_IN_DEVICES", d.devices));
  d.version = static_cast<int>(number("MUONWALK_STAND_IN_DRIVER", d.version));
  d.memory = static_cast<std::uintptr_t>(number("MUONWALK_STAND_IN_MEMORY", static_cast<long>(d.memory)));
  if (const char* const report = std::getenv("MUONWALK_STAND_IN_REPORT")) {
    d.report = report;
    std::atexit(leave_report);
  }
  void* const room = mmap(nullptr, arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) std::abort();
  d.arena = static_cast<unsigned char*>(room);
}

void read_failures(Driver& d) {
  static const bool read = [&] {
    if (const char* const what = std::getenv("MUONWALK_STAND_IN_FAIL")) plan_failures(d, what);
    return true;
  }();
  static_cast<void>(read);
}

MemoryOpen::MemoryOpen(const Driver& d, const std::vector<const void*>& addresses) {
  for (const void* const address : addresses) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto behind = d.allocations.upper_bound(at);
    if (behind == d.allocations.begin()) continue;
    const auto& [first, allocation] = *std::prev(behind);
    if (at < first + allocation.bytes) opened_[first] = allocation.room;
  }
  set_protection(opened_, PROT_READ | PROT_WRITE);
}

MemoryOpen::~MemoryOpen() { set_protection(opened_, PROT_NONE); }

std::vector<const void*> all_memory(const Driver& d) {
  std::vector<const void*> addresses;
  for (const auto& [first, allocation] : d.allocations) addresses.push_back(reinterpret_cast<const void*>(first));
  return addresses;
}

bool is_allocated(const Driver& d, const void* address, std::uintptr_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto it = d.allocations.upper_bound(at);
  if (it == d.allocations.begin()) return false;
  --it;
  return at >= it->first && at + bytes <= it->first + it->second.bytes;
}

bool may_be_copied(const Driver& d, const void* address, std::uintptr_t bytes) {
  return address != nullptr && (!in_arena(d, address) || is_allocated(d, address, bytes));
}

Call::Call(const char* name, bool before_init) {
  read_failures(d);
  ++d.calls[name];
  if (!before_init && d.process != getpid()) error = CUDA_ERROR_NOT_INITIALIZED;
  if (error == CUDA_SUCCESS) error = d.broken;
  for (Failure& failure : d.failures[name]) {
    if (failure.after-- != 0) continue;
    (failure.later ? later : error) = failure.error;
  }
}

OpenStream* open_stream(Driver& d, CUstream stream) {
  const auto it = d.streams.find(reinterpret_cast<OpenStream*>(stream));
  return it == d.streams.end() ? nullptr : it->second.get();
}

CUresult hand_in(Call& call, CUstream stream, std::function<CUresult()> work) {
  OpenStream* const open = open_stream(call.d, stream);
  if (open == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (current_device != open->device) return CUDA_ERROR_INVALID_CONTEXT;
  if (call.later != CUDA_SUCCESS) work = [error = call.later] { return error; };
  open->work.push_back({std::move(work)});
  return CUDA_SUCCESS;
}

bool step(Driver& d, OpenStream& stream) {
  if (stream.work.empty() || d.broken != CUDA_SUCCESS) return false;
  const CUresult result = stream.work.front().run();
  if (result == CUDA_ERROR_NOT_READY) return false;
  const Work done = std::move(stream.work.front());
  stream.work.pop_front();
  done.drop();
  d.broken = result;
  return true;
}

}  // namespace stand_in
