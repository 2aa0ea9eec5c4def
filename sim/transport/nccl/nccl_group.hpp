#pragma once

// Private to nccl_device.cpp, which connects groups, and nccl_backend.cpp, which then makes their calls.

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "sim/transport/nccl/nccl_library.hpp"
#include "src/comm/backend.hpp"
#include "src/cuda/kernels.hpp"

namespace muonwalk::sim {

/// One rank's communicator of NCCL, and the stream that it works on. Every call is checked, and every wait ends: when
/// NCCL reports an error, when `peers_are_there` throws, or after `timeout`.
class NcclGroup {
 public:
  /// Who this is: what errors say.
  struct Member {
    std::string group;  ///< The group's name.
    int rank = 0;       ///< This rank's number in the group.
    int size = 1;       ///< Ranks in the group.
  };

  /// Throws what is wrong with the peers, if anything is; asked a few times a second.
  using PeersAreThere = std::function<void()>;

  /// Joins the group that `id` names; returns when all of its ranks have.
  NcclGroup(Member member, const cuda::Device& device, const nccl::UniqueId& id, std::chrono::milliseconds timeout,
            PeersAreThere peers_are_there);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  /// From here on, errors say that the rank is in this call, and it has `timeout` for it.
  void begin(CollectiveKind kind);

  /// Makes a call of NCCL's on bytes in device memory, on the stream: `call("ncclSend", nccl_library().Send, from,
  /// bytes, nccl::kUint8, peer)`. The communicator and the stream, which come last, are not among the arguments.
  template <class... Parameters, class... Arguments>
  void call(const char* name, nccl::Result (*function)(Parameters...), Arguments... arguments) {
    check_soon(function(arguments..., comm_, stream_.handle()), name);
    if (!in_group_) cuda::tell_queued(stream_, cuda::Queued::library);
  }

  /// All calls that `work` makes are one group of calls. They run together, so their order does not matter; the stream
  /// has them when this returns.
  void together(const std::function<void()>& work);

  /// Returns when the stream has done all that it was given.
  void wait();

  /// Leaves without waiting for anybody: ends what is under way. Nobody touches the memory of earlier calls after that.
  void abort() noexcept;
  /// Leaves when all is done and the others leave as well. Aborts where that fails.
  void leave() noexcept;

  /// The stream, for copies and kernels between the calls.
  const cuda::Stream& stream() const { return stream_; }

 private:
  void check(nccl::Result result, const char* call) const;
  void check_soon(nccl::Result result, const char* call);
  nccl::Result asked();
  void look_around();

  Member member_;
  cuda::Device device_;
  cuda::Stream stream_;
  std::chrono::milliseconds timeout_;
  PeersAreThere peers_are_there_;
  nccl::Comm* comm_ = nullptr;
  bool in_group_ = false;
  std::string doing_ = "the rendezvous";
  std::chrono::steady_clock::time_point deadline_;
  std::chrono::steady_clock::time_point next_look_;
};

/// The backend (nccl_backend.cpp) of a group that is connected, over Gloo (`beneath`) and, where there is more than one
/// rank, over NCCL. `kernels` add.
std::unique_ptr<Backend> over_nccl(const NcclGroup::Member& member, const cuda::Kernels& kernels,
                                   std::unique_ptr<Backend> beneath, std::unique_ptr<NcclGroup> group);

}  // namespace muonwalk::sim
