#pragma once

// What the stand-in for CUDA's driver knows and keeps: cuda_stand_in.cpp has the driver's functions on top of it.

#include <cuda.h>
#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace stand_in {

constexpr std::uintptr_t arena_bytes = std::uintptr_t{16} << 30;
constexpr unsigned char canary = 0xff;  // a NaN in every format
constexpr int most_devices = 64;

struct Failure {
  long after = 0;  // calls that still succeed
  CUresult error = CUDA_SUCCESS;
  bool later = false;
};

struct Work {
  std::function<CUresult()> run;
  std::function<void()> drop = [] {};
};

struct OpenStream {
  int device = 0;
  std::deque<Work> work;
};

struct Allocation {
  std::uintptr_t bytes = 0;
  std::uintptr_t room = 0;  // with what lies behind it
  int device = 0;
};

struct Driver {
  std::recursive_mutex mutex;
  pid_t process = 0;  // that has called cuInit
  int devices = 1;
  int version = CUDA_VERSION;
  std::uintptr_t memory = std::uintptr_t{1} << 30;
  std::map<std::string, long> calls;
  std::map<std::string, std::vector<Failure>> failures;
  CUresult broken = CUDA_SUCCESS;  // an asynchronous error that was told
  unsigned char* arena = nullptr;
  std::map<std::uintptr_t, Allocation> allocations;  // by address
  std::uintptr_t live[most_devices] = {};
  std::map<OpenStream*, std::unique_ptr<OpenStream>> streams;
  int contexts[most_devices] = {};  // how often each is retained
  std::set<CUmodule> modules;
  unsigned thread_order = 0;
  std::string report;
};

// The one of this process.
Driver& driver();

// The device whose context the thread has made its own; −1 for none.
extern thread_local int current_device;

// CUDA's name and words for an error; null where the stand-in knows none.
struct ErrorTexts {
  const char *name = nullptr, *words = nullptr;
};
ErrorTexts texts_of(CUresult error);

// Reads the environment and takes the addresses that device memory will have: what cuInit does.
void start(Driver& d);
// What is to fail, as muonwalk_stand_in_fail takes it; and, once, as the environment has it.
void plan_failures(Driver& d, const char* what);
void read_failures(Driver& d);

// What is not given back yet.
long live_objects(const Driver& d);
std::uintptr_t live_bytes(const Driver& d);

// While it lives, what was allocated at these addresses can be read and written, and nothing else of a device's memory.
class MemoryOpen {
 public:
  MemoryOpen(const Driver& d, const std::vector<const void*>& addresses);
  ~MemoryOpen();
  MemoryOpen(const MemoryOpen&) = delete;
  MemoryOpen& operator=(const MemoryOpen&) = delete;

 private:
  std::map<std::uintptr_t, std::uintptr_t> opened_;
};
std::vector<const void*> all_memory(const Driver& d);

// Are these bytes allocated on a device?
bool is_allocated(const Driver& d, const void* address, std::uintptr_t bytes);
// May a copy read or write them? A host's may lie anywhere else.
bool may_be_copied(const Driver& d, const void* address, std::uintptr_t bytes);

// What every function begins with: one at a time, counted, in the process that has called cuInit, and failing if it is
// to.
struct Call {
  Driver& d = driver();
  std::unique_lock<std::recursive_mutex> lock{d.mutex};
  CUresult error = CUDA_SUCCESS;
  CUresult later = CUDA_SUCCESS;  // the work that it hands in will fail so

  explicit Call(const char* name, bool before_init = false);
};

// Null where there is none.
OpenStream* open_stream(Driver& d, CUstream stream);
// Hands a stream of the current device a piece of work.
CUresult hand_in(Call& call, CUstream stream, std::function<CUresult()> work);
// One piece of a stream's work. True where there was one and it is done.
bool step(Driver& d, OpenStream& stream);

}  // namespace stand_in
