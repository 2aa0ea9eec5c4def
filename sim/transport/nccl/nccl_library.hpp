#pragma once

#include <climits>
#include <cstddef>
#include <string>

struct CUstream_st;  // the driver's

/// The part of NCCL's C interface that is used here. It is written down once more, because the library is found at run
/// time, and a program should build where NCCL's own header is not installed. Where it is, a test compares the two.
namespace muonwalk::sim::nccl {

/// One rank's end of a group, as the library sees it.
struct Comm;

/// What the ranks of one group know each other by.
struct UniqueId {
  char bytes[128];  ///< Whatever NCCL writes there.
};

/// How a call ended.
enum Result : int {
  kSuccess = 0,             ///< All is well.
  kUnhandledCudaError = 1,  ///< A call to CUDA failed.
  kSystemError = 2,         ///< A call to the system failed.
  kInternalError = 3,       ///< NCCL is to blame
  kInvalidArgument = 4,     ///< An argument cannot be.
  kInvalidUsage = 5,        ///< The call cannot be.
  kRemoteError = 6,         ///< Another rank is gone.
  kInProgress = 7,          ///< Not yet: ncclCommGetAsyncError tells when.
};

/// What is moved is bytes, and what is added up are numbers.
enum DataType : int {
  kUint8 = 1,   ///< A byte.
  kFloat32 = 7  ///< A float.
};

/// What becomes of several numbers.
enum RedOp : int {
  kSum = 0  ///< Their sum.
};

/// How a communicator is to behave, in the form of NCCL 2.14, which later versions take as well.
struct Config {
  std::size_t size = sizeof(Config);  ///< The size of this struct.
  unsigned int magic = 0xcafebeef;    ///< What marks it as a config.
  unsigned int version = 21400;       ///< The version of NCCL that has this form.
  int blocking = 0;                   ///< Calls return at once, so that waiting can be given up.
  int room = INT_MIN;                 ///< Not set: a later version has more here.
};

/// A CUstream.
using Stream = ::CUstream_st*;

/// The calls, under their own names without the "nccl".
struct Calls {
  /// As in NCCL's own documentation.
  /// @{
  Result (*GetVersion)(int* version);
  Result (*GetUniqueId)(UniqueId* id);
  Result (*CommInitRankConfig)(Comm** comm, int ranks, UniqueId id, int rank, Config* config);
  Result (*CommFinalize)(Comm* comm);
  Result (*CommDestroy)(Comm* comm);
  Result (*CommAbort)(Comm* comm);
  Result (*CommGetAsyncError)(Comm* comm, Result* error);
  Result (*AllGather)(const void* from, void* to, std::size_t count, DataType type, Comm* comm, Stream stream);
  Result (*Broadcast)(const void* from, void* to, std::size_t count, DataType type, int root, Comm* comm,
                      Stream stream);
  Result (*ReduceScatter)(const void* from, void* to, std::size_t count, DataType type, RedOp op, Comm* comm,
                          Stream stream);
  Result (*Send)(const void* from, std::size_t count, DataType type, int peer, Comm* comm, Stream stream);
  Result (*Recv)(void* to, std::size_t count, DataType type, int peer, Comm* comm, Stream stream);
  Result (*GroupStart)();
  Result (*GroupEnd)();
  const char* (*GetErrorString)(Result result);
  const char* (*GetLastError)(Comm* comm);
  /// @}
};

}  // namespace muonwalk::sim::nccl

namespace muonwalk::sim {

/// NCCL's calls, by their names. Nothing of NCCL is linked: libnccl.so.2 is opened by the first call, or the library
/// that the environment variable MUONWALK_NCCL_LIBRARY names, which is how tests bring theirs. Throws UsageError where
/// there is none, or one that is older than 2.14, whose calls can't be given up.
const nccl::Calls& nccl_library();

/// NCCL's own words for an error: "unhandled cuda error", and what it last complained of, where it says so. `comm` may
/// be null.
std::string nccl_words(nccl::Result result, nccl::Comm* comm);

}  // namespace muonwalk::sim
