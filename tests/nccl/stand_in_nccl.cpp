// A stand-in for NCCL, for tests on machines without a GPU: a shared library with the calls that Muonwalk makes. It
// moves the bytes through memory that processes and threads share, and runs on the streams of the stand-in for CUDA. It
// is as strict as NCCL is, or stricter: device pointers only, two ranks of a group never on one device, communicators
// that do not block, and work that begins only once the communicator has been asked how it is.
//
// The environment says what goes wrong:
//   MUONWALK_STAND_IN_NCCL_FAIL=CALL:N[@RANK]   the N-th call of this name (of this rank of its group) fails.
//       CALL is a function ("ncclSend"), or "async": the N-th group of calls is never done and the communicator reports
//       an error, or "hang": it is never done and nothing is reported, or "die": the process ends in the middle of it.
//   MUONWALK_STAND_IN_NCCL_SHARED_DEVICE=1      several ranks of a group may be on one device
//   MUONWALK_STAND_IN_NCCL_VERSION=21303        the version that it says it has

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/transport/nccl/nccl_library.hpp"
#include "tests/cuda/stand_in.hpp"

namespace nccl = muonwalk::sim::nccl;
using nccl::Result;

namespace {

constexpr int kMostRanks = 64;
constexpr std::size_t kRing = std::size_t{1} << 14;  // bytes under way from one rank to one other

// What goes from one rank to one other.
struct Ring {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> taken;
  unsigned char bytes[kRing];
};

// The memory that the ranks of a group share.
struct Group {
  std::atomic<int> joined;
  std::atomic<int> ranks;
  std::atomic<int> device[kMostRanks];  // plus 1; 0 where the rank has not come
  Ring ring[kMostRanks * kMostRanks];   // [from][to]; what is not used costs nothing
};

struct Transfer {
  bool sends = false;
  int peer = 0;
  unsigned char* memory = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t done = 0;      // of the 8 bytes that say how many there are, and of the bytes
  std::uint64_t expected = 0;  // what the peer says that it sends
};

struct State;

// What one group of calls enqueues on one stream.
struct Work {
  std::shared_ptr<State> comm;
  CUstream stream = nullptr;
  std::vector<Transfer> transfers;
  std::vector<std::pair<void*, std::pair<const void*, std::size_t>>> copies;  // a rank's own part
  // A rank's own floats, what has come from each other rank, and where their sum belongs.
  const float* own_addends = nullptr;
  std::vector<std::vector<float>> addends;
  float* sum = nullptr;
  bool never_done = false;
};

// What goes to NCCL's last error.
thread_local std::string last_error;
thread_local int depth = 0;
thread_local std::vector<std::unique_ptr<Work>> open_work;

std::atomic<long long> live_communicators{0};
std::mutex calls_mutex;
std::map<std::string, long long>& calls_made() {
  static auto* made = new std::map<std::string, long long>;
  return *made;
}

}  // namespace

namespace {

// A communicator. Work that a stream still has keeps it alive.
struct State {
  ~State() {
    if (group != nullptr) munmap(group, sizeof(Group));
  }
  int rank = 0;
  int ranks = 0;
  int device = 0;
  Group* group = nullptr;
  std::atomic<int> error{nccl::kSuccess};
  std::atomic<bool> aborted{false};
  bool joined = false;
  bool fails_later = false;
  int polls = 0;
  std::vector<std::unique_ptr<Work>> not_begun;  // until the communicator has been asked how it is
  std::string last_error;
  std::map<std::string, long long> calls;
};

}  // namespace

struct nccl::Comm {
  std::shared_ptr<State> state;
};

namespace {

// ---- the stand-in for CUDA, which the program has loaded
// --------------------------------------------------------------

template <class Function>
Function cuda_call(const char* name) {
  const char* path = std::getenv("MUONWALK_CUDA_LIBRARY");
  void* library = dlopen(path ? path : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* call = library ? dlsym(library, name) : nullptr;
  if (call == nullptr) {
    std::fprintf(stderr, "the stand-in for NCCL finds no %s in the stand-in for CUDA\n", name);
    std::abort();
  }
  return reinterpret_cast<Function>(call);
}

int current_device() {
  CUdevice device = -1;
  static const auto get = cuda_call<CUresult (*)(CUdevice*)>("cuCtxGetDevice");
  return get(&device) == CUDA_SUCCESS ? device : -1;
}

int device_of_stream(CUstream stream) {
  static const auto ask = cuda_call<decltype(&muonwalk_stand_in_device_of)>("muonwalk_stand_in_device_of");
  return ask(stream);
}

// All of these bytes are memory of this device.
bool on_device(const void* memory, std::size_t bytes, int device) {
  static const auto known =
      cuda_call<decltype(&muonwalk_stand_in_is_device_memory)>("muonwalk_stand_in_is_device_memory");
  static const auto ask = cuda_call<CUresult (*)(void*, CUpointer_attribute, CUdeviceptr)>("cuPointerGetAttribute");
  int ordinal = -1;
  return known(memory, bytes) != 0 &&
         ask(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, reinterpret_cast<CUdeviceptr>(memory)) == CUDA_SUCCESS &&
         ordinal == device;
}

// ---- what goes wrong on purpose
// ---------------------------------------------------------------------------------------

struct Fault {
  std::string call;
  long long number = 0;
  int rank = -1;  // any
};

Fault planned_fault() {
  Fault fault;
  const char* text = std::getenv("MUONWALK_STAND_IN_NCCL_FAIL");
  if (text == nullptr) return fault;
  const std::string all = text;
  const std::size_t colon = all.find(':'), at = all.find('@');
  if (colon == std::string::npos) std::abort();
  fault.call = all.substr(0, colon);
  fault.number = std::atoll(all.c_str() + colon + 1);
  if (at != std::string::npos) fault.rank = std::atoi(all.c_str() + at + 1);
  return fault;
}

// Counts a call, and says whether it is the one that is to go wrong. A call that belongs to no communicator is counted
// for the whole process.
bool goes_wrong(const char* call, State* comm) {
  const std::lock_guard<std::mutex> lock(calls_mutex);
  const long long of_process = ++calls_made()[call];
  const long long number = comm != nullptr ? ++comm->calls[call] : of_process;
  const Fault fault = planned_fault();
  return fault.call == call && fault.number == number &&
         (fault.rank < 0 || comm == nullptr || fault.rank == comm->rank);
}

Result fail(State* comm, Result result, const std::string& why) {
  last_error = why;
  if (comm != nullptr) {
    comm->last_error = why;
    comm->error = result;
  }
  return result;
}

// ---- moving bytes
// ----------------------------------------------------------------------------------------------------

std::uint64_t rest_of_frame(const Transfer& transfer) {
  return transfer.done < 8 ? 8 - transfer.done : 8 + transfer.bytes - transfer.done;
}

unsigned char* at(Transfer& transfer, unsigned char* header) {
  return transfer.done < 8 ? header + transfer.done : transfer.memory + (transfer.done - 8);
}

// Moves what can be moved now. True when something was.
bool advance(State& comm, Transfer& transfer) {
  const auto from = static_cast<std::size_t>(transfer.sends ? comm.rank : transfer.peer);
  const auto to = static_cast<std::size_t>(transfer.sends ? transfer.peer : comm.rank);
  Ring& ring = comm.group->ring[from * kMostRanks + to];
  const std::uint64_t written = ring.written.load(std::memory_order_acquire);
  const std::uint64_t taken = ring.taken.load(std::memory_order_acquire);
  const std::uint64_t place = (transfer.sends ? written : taken) % kRing;
  std::uint64_t room = transfer.sends ? kRing - (written - taken) : written - taken;
  room = std::min(std::min(room, kRing - place), rest_of_frame(transfer));
  if (room == 0) return false;
  if (transfer.sends) {
    std::memcpy(ring.bytes + place, at(transfer, reinterpret_cast<unsigned char*>(&transfer.bytes)), room);
    ring.written.store(written + room, std::memory_order_release);
  } else {
    std::memcpy(at(transfer, reinterpret_cast<unsigned char*>(&transfer.expected)), ring.bytes + place, room);
    ring.taken.store(taken + room, std::memory_order_release);
  }
  transfer.done += room;
  if (!transfer.sends && transfer.done == 8 && transfer.expected != transfer.bytes) {
    fail(&comm, nccl::kInternalError,
         "rank " + std::to_string(comm.rank) + " takes " + std::to_string(transfer.bytes) + " bytes, and rank " +
             std::to_string(transfer.peer) + " sends " + std::to_string(transfer.expected));
  }
  return true;
}

bool is_done(const Transfer& transfer) { return transfer.done == 8 + transfer.bytes; }

// All of a group's transfers advance together, but of those between the same two ranks in the same direction only the
// first that is not done. Called whenever the stream is asked.
CUresult move(void* data) {
  Work& work = *static_cast<Work*>(data);
  State& comm = *work.comm;
  for (auto& [to, from] : work.copies) std::memmove(to, from.first, from.second);
  work.copies.clear();
  for (bool moved = true; moved && !comm.aborted;) {
    bool all_done = !work.never_done;
    bool busy[2][kMostRanks] = {};
    moved = false;
    for (Transfer& transfer : work.transfers) {
      bool& earlier = busy[transfer.sends][transfer.peer];
      if (is_done(transfer) || earlier) continue;
      earlier = true;
      if (comm.error == nccl::kSuccess) moved = advance(comm, transfer) || moved;
      all_done = all_done && is_done(transfer);
    }
    if (!all_done) continue;
    // In an order of its own, which is not that of ranks: the farthest first.
    for (std::size_t i = 0; !work.addends.empty() && i < work.addends[0].size(); ++i) {
      float sum = work.addends.back()[i];
      for (std::size_t rank = work.addends.size() - 1; rank-- > 0;) sum += work.addends[rank][i];
      work.sum[i] = sum + work.own_addends[i];
    }
    return CUDA_SUCCESS;
  }
  return comm.aborted ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

void drop(void* data) { delete static_cast<Work*>(data); }

Result begin(std::unique_ptr<Work> work) {
  static const auto enqueue_on = cuda_call<decltype(&muonwalk_stand_in_enqueue)>("muonwalk_stand_in_enqueue");
  const std::shared_ptr<State> comm = work->comm;
  if (enqueue_on(work->stream, move, drop, work.get()) != CUDA_SUCCESS)
    return fail(comm.get(), nccl::kUnhandledCudaError, "the stream takes no work");
  work.release();
  return nccl::kSuccess;
}

// The work that this thread's open group does for `comm` on `stream`.
Work& work_for(const std::shared_ptr<State>& comm, CUstream stream) {
  for (auto& work : open_work)
    if (work->comm == comm && work->stream == stream) return *work;
  open_work.push_back(std::make_unique<Work>());
  open_work.back()->comm = comm;
  open_work.back()->stream = stream;
  return *open_work.back();
}

// What all calls that move something have in common.
template <class Add>
Result enqueue(const char* call, nccl::Comm* handle, CUstream stream, const Add& add) {
  if (handle == nullptr) return fail(nullptr, nccl::kInvalidArgument, std::string(call) + " got no communicator");
  State* const comm = handle->state.get();
  if (goes_wrong(call, comm)) return fail(comm, nccl::kInternalError, std::string(call) + " fails on purpose");
  if (!comm->joined) return fail(comm, nccl::kInvalidUsage, "the communicator is not ready");
  if (!comm->not_begun.empty()) return fail(comm, nccl::kInvalidUsage, "the call before is still in progress");
  if (current_device() != comm->device)
    return fail(comm, nccl::kInvalidUsage, "the current device is not that of the communicator");
  if (device_of_stream(stream) != comm->device)
    return fail(comm, nccl::kInvalidArgument, "the stream is not of the communicator's device");
  const Result result = add(work_for(handle->state, stream));
  if (depth > 0) return result;
  std::vector<std::unique_ptr<Work>> works = std::move(open_work);
  open_work.clear();
  if (result != nccl::kSuccess) return result;
  for (auto& work : works) comm->not_begun.push_back(std::move(work));
  comm->polls = 0;
  return nccl::kInProgress;
}

Result add_transfer(Work& work, bool sends, int peer, const void* memory, std::size_t bytes) {
  State& comm = *work.comm;
  if (peer < 0 || peer >= comm.ranks) return fail(&comm, nccl::kInvalidArgument, "there is no such peer");
  if (bytes > 0 && !on_device(memory, bytes, comm.device))
    return fail(&comm, nccl::kInvalidArgument, "the memory is not on the communicator's device");
  Transfer transfer;
  transfer.sends = sends;
  transfer.peer = peer;
  transfer.memory = static_cast<unsigned char*>(const_cast<void*>(memory));
  transfer.bytes = bytes;
  work.transfers.push_back(transfer);
  return nccl::kSuccess;
}

Result add_copy(Work& work, void* to, const void* from, std::size_t bytes) {
  State& comm = *work.comm;
  if (bytes > 0 && (!on_device(to, bytes, comm.device) || !on_device(from, bytes, comm.device)))
    return fail(&comm, nccl::kInvalidArgument, "the memory is not on the communicator's device");
  if (to != from) work.copies.push_back({to, {from, bytes}});
  return nccl::kSuccess;
}

// An id says where the group's memory is: a process and one of its descriptors. Nothing of it outlives the processes.
struct WrittenId {
  char words[24];
  int process;
  int descriptor;
};

Group* open_group(const WrittenId& id) {
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/%d/fd/%d", id.process, id.descriptor);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* memory = mmap(nullptr, sizeof(Group), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Group*>(memory);
}

void release(nccl::Comm* comm) {
  comm->state->aborted = true;
  comm->state->not_begun.clear();  // they hold on to the communicator
  delete comm;
  --live_communicators;
}

}  // namespace

extern "C" {

/// How often a function was called in this process.
long long muonwalk_stand_in_nccl_calls(const char* call) {
  const std::lock_guard<std::mutex> lock(calls_mutex);
  return calls_made()[call];
}
/// Communicators that were neither destroyed nor aborted.
long long muonwalk_stand_in_nccl_live() { return live_communicators; }
/// Groups of calls that the calling thread has begun and not ended.
int muonwalk_stand_in_nccl_open_groups() { return depth; }

Result ncclGetVersion(int* version) {
  if (goes_wrong("ncclGetVersion", nullptr)) return fail(nullptr, nccl::kInternalError, "fails on purpose");
  const char* text = std::getenv("MUONWALK_STAND_IN_NCCL_VERSION");
  *version = text ? std::atoi(text) : 22809;
  return nccl::kSuccess;
}

Result ncclGetUniqueId(nccl::UniqueId* id) {
  if (goes_wrong("ncclGetUniqueId", nullptr)) return fail(nullptr, nccl::kSystemError, "fails on purpose");
  WrittenId written = {};
  std::strcpy(written.words, "stand-in for NCCL");
  written.process = static_cast<int>(getpid());
  written.descriptor = memfd_create("stand-in for NCCL", MFD_CLOEXEC);
  if (written.descriptor < 0 || ftruncate(written.descriptor, sizeof(Group)) != 0)
    return fail(nullptr, nccl::kSystemError, "no memory can be shared");
  std::memset(id, 0, sizeof(*id));
  std::memcpy(id, &written, sizeof(written));
  return nccl::kSuccess;
}

Result ncclCommInitRankConfig(nccl::Comm** comm, int ranks, nccl::UniqueId id, int rank, nccl::Config* config) {
  if (goes_wrong("ncclCommInitRankConfig", nullptr)) return fail(nullptr, nccl::kInternalError, "fails on purpose");
  if (config == nullptr || config->magic != 0xcafebeef || config->blocking != 0)
    return fail(nullptr, nccl::kInvalidArgument, "the stand-in's communicators never block");
  if (ranks < 1 || ranks > kMostRanks || rank < 0 || rank >= ranks)
    return fail(nullptr, nccl::kInvalidArgument, "there is no such rank");
  const int device = current_device();
  if (device < 0) return fail(nullptr, nccl::kUnhandledCudaError, "no context is current");
  WrittenId written;
  std::memcpy(&written, &id, sizeof(written));
  Group* group = std::strcmp(written.words, "stand-in for NCCL") == 0 ? open_group(written) : nullptr;
  if (group == nullptr) return fail(nullptr, nccl::kSystemError, "the rank that made the id is gone");
  auto made = std::make_shared<State>();
  made->rank = rank;
  made->ranks = ranks;
  made->device = device;
  made->group = group;
  int known = 0;
  if (!group->ranks.compare_exchange_strong(known, ranks) && known != ranks)
    return fail(nullptr, nccl::kInvalidArgument, "the ranks do not agree how many they are");
  int nobody = 0;
  if (!group->device[rank].compare_exchange_strong(nobody, device + 1))
    return fail(nullptr, nccl::kInvalidUsage, "two ranks have one number");
  ++group->joined;
  ++live_communicators;
  *comm = new nccl::Comm{made};
  return nccl::kInProgress;
}

Result ncclCommGetAsyncError(nccl::Comm* handle, Result* error) {
  State* const comm = handle->state.get();
  if (goes_wrong("ncclCommGetAsyncError", comm)) return fail(comm, nccl::kInternalError, "fails on purpose");
  if (!comm->joined && comm->error == nccl::kSuccess) {
    *error = nccl::kInProgress;
    if (comm->group->joined < comm->ranks || ++comm->polls < 2) return nccl::kSuccess;
    const bool shared = std::getenv("MUONWALK_STAND_IN_NCCL_SHARED_DEVICE") != nullptr;
    for (int a = 0; a < comm->ranks && !shared; ++a) {
      for (int b = a + 1; b < comm->ranks; ++b) {
        if (comm->group->device[a] != comm->group->device[b]) continue;
        fail(comm, nccl::kInvalidUsage,
             "Duplicate GPU detected : rank " + std::to_string(a) + " and rank " + std::to_string(b) +
                 " both on CUDA device " + std::to_string(comm->group->device[a] - 1));
      }
    }
    comm->joined = comm->error == nccl::kSuccess;
  }
  if (!comm->not_begun.empty() && comm->error == nccl::kSuccess) {
    if (++comm->polls < 2) {
      *error = nccl::kInProgress;
      return nccl::kSuccess;
    }
    std::vector<std::unique_ptr<Work>> works = std::move(comm->not_begun);
    comm->not_begun.clear();
    for (auto& work : works) begin(std::move(work));
    comm->polls = 0;
  } else if (comm->fails_later && ++comm->polls > 5) {
    comm->fails_later = false;
    fail(comm, nccl::kUnhandledCudaError, "a cable was pulled on purpose");
  }
  *error = static_cast<Result>(comm->error.load());
  return nccl::kSuccess;
}

Result ncclCommFinalize(nccl::Comm* handle) {
  State* const comm = handle->state.get();
  if (goes_wrong("ncclCommFinalize", comm)) return fail(comm, nccl::kInternalError, "fails on purpose");
  return nccl::kSuccess;
}

Result ncclCommDestroy(nccl::Comm* handle) {
  State* const comm = handle->state.get();
  if (goes_wrong("ncclCommDestroy", comm)) return fail(comm, nccl::kInternalError, "fails on purpose");
  release(handle);
  return nccl::kSuccess;
}

Result ncclCommAbort(nccl::Comm* handle) {
  State* const comm = handle->state.get();
  const bool wrong = goes_wrong("ncclCommAbort", comm);
  release(handle);
  return wrong ? fail(nullptr, nccl::kInternalError, "fails on purpose") : nccl::kSuccess;
}

Result ncclGroupStart() {
  if (goes_wrong("ncclGroupStart", nullptr)) return fail(nullptr, nccl::kInternalError, "fails on purpose");
  ++depth;
  return nccl::kSuccess;
}

Result ncclGroupEnd() {
  if (depth == 0) return fail(nullptr, nccl::kInvalidUsage, "no group is open");
  if (--depth > 0) return nccl::kSuccess;
  std::vector<std::unique_ptr<Work>> works = std::move(open_work);
  open_work.clear();
  Result result = nccl::kSuccess;
  for (auto& work : works) {
    State& comm = *work->comm;
    if (goes_wrong("ncclGroupEnd", &comm)) return fail(&comm, nccl::kInternalError, "ncclGroupEnd fails on purpose");
    if (comm.error != nccl::kSuccess) return static_cast<Result>(comm.error.load());
    if (goes_wrong("die", &comm)) _exit(9);
    if (goes_wrong("hang", &comm)) work->never_done = true;
    if (goes_wrong("async", &comm)) {
      work->never_done = true;
      comm.fails_later = true;
    }
    comm.polls = 0;
    comm.not_begun.push_back(std::move(work));
    result = nccl::kInProgress;
  }
  return result;
}

Result ncclSend(const void* from, std::size_t count, nccl::DataType type, int peer, nccl::Comm* comm, CUstream stream) {
  return enqueue("ncclSend", comm, stream, [&](Work& work) {
    if (type != nccl::kUint8) return fail(work.comm.get(), nccl::kInvalidArgument, "the stand-in moves bytes only");
    return add_transfer(work, true, peer, from, count);
  });
}

Result ncclRecv(void* to, std::size_t count, nccl::DataType type, int peer, nccl::Comm* comm, CUstream stream) {
  return enqueue("ncclRecv", comm, stream, [&](Work& work) {
    if (type != nccl::kUint8) return fail(work.comm.get(), nccl::kInvalidArgument, "the stand-in moves bytes only");
    return add_transfer(work, false, peer, to, count);
  });
}

Result ncclAllGather(const void* from, void* to, std::size_t count, nccl::DataType type, nccl::Comm* comm,
                     CUstream stream) {
  return enqueue("ncclAllGather", comm, stream, [&](Work& work) {
    if (type != nccl::kUint8) return fail(work.comm.get(), nccl::kInvalidArgument, "the stand-in moves bytes only");
    const auto place = [&](int rank) { return static_cast<char*>(to) + static_cast<std::size_t>(rank) * count; };
    Result result = add_copy(work, place(work.comm->rank), from, count);
    for (int peer = 0; peer < work.comm->ranks && result == nccl::kSuccess; ++peer) {
      if (peer == work.comm->rank) continue;
      result = add_transfer(work, true, peer, from, count);
      if (result == nccl::kSuccess) result = add_transfer(work, false, peer, place(peer), count);
    }
    return result;
  });
}

Result ncclReduceScatter(const void* from, void* to, std::size_t count, nccl::DataType type, nccl::RedOp op,
                         nccl::Comm* comm, CUstream stream) {
  return enqueue("ncclReduceScatter", comm, stream, [&](Work& work) {
    State& state = *work.comm;
    if (type != nccl::kFloat32 || op != nccl::kSum)
      return fail(&state, nccl::kInvalidArgument, "the stand-in adds floats only");
    const auto* const floats = static_cast<const float*>(from);
    if (!on_device(from, count * sizeof(float) * static_cast<std::size_t>(state.ranks), state.device) ||
        !on_device(to, count * sizeof(float), state.device))
      return fail(&state, nccl::kInvalidArgument, "the memory is not on the communicator's device");
    work.own_addends = floats + static_cast<std::size_t>(state.rank) * count;
    work.sum = static_cast<float*>(to);
    for (int peer = 0; peer < state.ranks; ++peer) {
      if (peer == state.rank) continue;
      work.addends.emplace_back(count);
      Transfer there, here;
      there.sends = true;
      there.peer = here.peer = peer;
      there.bytes = here.bytes = count * sizeof(float);
      there.memory =
          reinterpret_cast<unsigned char*>(const_cast<float*>(floats + static_cast<std::size_t>(peer) * count));
      here.memory = reinterpret_cast<unsigned char*>(work.addends.back().data());
      work.transfers.insert(work.transfers.end(), {there, here});
    }
    return nccl::kSuccess;
  });
}

Result ncclBroadcast(const void* from, void* to, std::size_t count, nccl::DataType type, int root, nccl::Comm* comm,
                     CUstream stream) {
  return enqueue("ncclBroadcast", comm, stream, [&](Work& work) {
    if (type != nccl::kUint8) return fail(work.comm.get(), nccl::kInvalidArgument, "the stand-in moves bytes only");
    if (root < 0 || root >= work.comm->ranks)
      return fail(work.comm.get(), nccl::kInvalidArgument, "there is no such root");
    if (work.comm->rank != root) return add_transfer(work, false, root, to, count);
    Result result = add_copy(work, to, from, count);
    for (int peer = 0; peer < work.comm->ranks && result == nccl::kSuccess; ++peer)
      if (peer != root) result = add_transfer(work, true, peer, from, count);
    return result;
  });
}

const char* ncclGetErrorString(Result result) {
  switch (result) {
    case nccl::kSuccess:
      return "no error";
    case nccl::kUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case nccl::kSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case nccl::kInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case nccl::kInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case nccl::kInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case nccl::kRemoteError:
      return "remote process exited or there was a network error";
    case nccl::kInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(nccl::Comm* comm) {
  return comm != nullptr && !comm->state->last_error.empty() ? comm->state->last_error.c_str() : last_error.c_str();
}

}  // extern "C"
