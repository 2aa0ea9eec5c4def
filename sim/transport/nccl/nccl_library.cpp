#include "sim/transport/nccl/nccl_library.hpp"

#include <fmt/format.h>

#include "src/cuda/cuda_library.hpp"
#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

constexpr const char* kPurpose = "NCCL";

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(cuda::find_function(library, name, kPurpose));
}

nccl::Calls open_calls() {
  void* library = cuda::open_library("MUONWALK_NCCL_LIBRARY", {"libnccl.so.2"}, kPurpose,
                                     "NVIDIA's package libnccl2 has it, and so has PyTorch for GPUs");
  nccl::Calls calls;
  find(library, "ncclGetVersion", calls.GetVersion);
  int version = 0;
  const nccl::Result result = calls.GetVersion(&version);
  if (result != nccl::kSuccess)
    throw UsageError(
        fmt::format("NCCL was asked for, and does not even tell its version: ncclGetVersion returns {}; "
                    "install another one, or name it with MUONWALK_NCCL_LIBRARY",
                    static_cast<int>(result)));
  if (version < 21400)
    throw UsageError(fmt::format(
        "NCCL was asked for, and the one that is installed is {}.{}, whose calls can't be given up when a "
        "rank dies; version 2.14 or later works, and MUONWALK_NCCL_LIBRARY may name one",
        version < 2900 ? version / 1000 : version / 10000, version < 2900 ? version / 100 % 10 : version / 100 % 100));
  find(library, "ncclGetUniqueId", calls.GetUniqueId);
  find(library, "ncclCommInitRankConfig", calls.CommInitRankConfig);
  find(library, "ncclCommFinalize", calls.CommFinalize);
  find(library, "ncclCommDestroy", calls.CommDestroy);
  find(library, "ncclCommAbort", calls.CommAbort);
  find(library, "ncclCommGetAsyncError", calls.CommGetAsyncError);
  find(library, "ncclAllGather", calls.AllGather);
  find(library, "ncclBroadcast", calls.Broadcast);
  find(library, "ncclReduceScatter", calls.ReduceScatter);
  find(library, "ncclSend", calls.Send);
  find(library, "ncclRecv", calls.Recv);
  find(library, "ncclGroupStart", calls.GroupStart);
  find(library, "ncclGroupEnd", calls.GroupEnd);
  find(library, "ncclGetErrorString", calls.GetErrorString);
  find(library, "ncclGetLastError", calls.GetLastError);
  return calls;
}

}  // namespace

const nccl::Calls& nccl_library() {
  static const nccl::Calls calls = open_calls();
  return calls;
}

std::string nccl_words(nccl::Result result, nccl::Comm* comm) {
  const nccl::Calls& calls = nccl_library();
  std::string words = calls.GetErrorString(result);
  const char* last = calls.GetLastError(comm);
  if (last == nullptr || *last == '\0') return words;
  std::string complaint = last;
  while (!complaint.empty() && (complaint.back() == '\n' || complaint.back() == '.')) complaint.pop_back();
  return words + ": " + complaint;
}

}  // namespace muonwalk::sim
