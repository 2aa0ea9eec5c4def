#pragma once

// Private to nccl_device.cpp and nccl_backend.cpp.

#include <chrono>
#include <functional>
#include <string>

#include "sim/transport/nccl/nccl_api.hpp"
#include "src/comm/call.hpp"
#include "src/cuda/device.hpp"

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

  /// Everything that `work` asks for with send, receive and so on is one group of calls. They run together, so their
  /// order does not matter; the stream has them when this returns.
  void together(const std::function<void()>& work);

  /// Bytes in device memory, on the stream.
  /// @{
  void send(const void* from, Index bytes, int peer);
  void receive(void* to, Index bytes, int peer);
  void all_gather(const void* from, void* to, Index bytes_of_each);
  void broadcast(void* values, Index bytes, int root);
  /// Adds up in an order of NCCL's own. `count_of_each` floats for every rank.
  void reduce_scatter(const void* from, void* to, Index count_of_each);
  /// @}

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
  std::string where(const std::string& call) const;

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

}  // namespace muonwalk::sim
