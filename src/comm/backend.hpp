#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/comm/ledger.hpp"

namespace muonwalk {

/// The call that a message belongs to. It travels with the message, so that ranks that are in different calls notice it
/// before any of them takes the bytes of the other for its own.
struct Envelope {
  CollectiveKind kind = CollectiveKind::barrier;
  ElementType type = ElementType::bytes;
  /// Collectives that the rank has made in this group before this call; 0 for send and recv, whose order is their own.
  std::int64_t number = 0;
  int root = 0;  ///< The root of a broadcast; 0 otherwise.

  /// True for send and recv, whose messages are matched apart from those of collectives.
  bool from_rank_to_rank() const { return kind == CollectiveKind::send || kind == CollectiveKind::recv; }
};

/// What the receiver of a message throws when `peer` sent `peer_bytes` in `peer_call` while `rank`, in `call`, expected
/// `bytes`: one sentence that names the group, both ranks and what differs. Empty when the two agree.
std::string mismatch(const std::string& group, int rank, const Envelope& call, std::int64_t bytes, int peer,
                     const Envelope& peer_call, std::int64_t peer_bytes);

/// A message under way, which has to be waited for. Where it is destroyed before, the backend must have been closed.
class PostedMessage {
 public:
  virtual ~PostedMessage() = default;
  /// Is told for which rank of the group this rank is going to wait, before it does.
  using WaitsFor = std::function<void(int peer)>;
  /// Returns when the message has been taken by its receiver (it has posted the receive, and the memory to send from
  /// may be used again) or has arrived (the memory to receive into is filled). Throws RunError when the peer's message
  /// does not have the expected size or belongs to another call (both are named), when the peer is gone, and
  /// TimeoutError when nothing has happened for as long as the backend waits.
  virtual void wait(const WaitsFor& waits_for) = 0;
};

/// A whole collective on raw memory, for a backend that has it ready-made. Counts are in elements, one for each rank
/// where that rank's share may differ.
struct NativeCall {
  CollectiveKind kind = CollectiveKind::barrier;
  ElementType type = ElementType::bytes;
  const void* in = nullptr;       ///< What this rank puts in.
  std::vector<Index> in_counts;   ///< One for each rank in reduce_scatter and all_to_all, else one.
  void* out = nullptr;            ///< What this rank gets; the same memory as `in` for all_reduce and broadcast.
  std::vector<Index> out_counts;  ///< One for each rank in all_gather and all_to_all, else one.
  int root = 0;                   ///< The root of a broadcast.
  /// The backend calls this for every message that a collective of messages would make of the call, in the order that
  /// such a one has, because traces and pictures are made of what observers are told.
  std::function<void(bool sent, int peer, std::int64_t bytes)> moved = nullptr;
};

/// What the kernel counted on the connections of one group on this rank.
struct KernelTraffic {
  bool known = false;               ///< The kernel could be asked.
  std::int64_t bytes_sent = 0;      ///< Headers are in it.
  std::int64_t bytes_received = 0;  ///< Headers are in it.
};

/// What moves the bytes of one rank in one group. This is all that a backend has to bring; calls on typed memory,
/// argument checks, counting, tracing and the collectives themselves stand above it, once, in Communicator.
/// `sim/transport` has one over Gloo and one through the memory of a process.
///
/// Messages of one kind (of collectives, or from rank to rank) from one rank to another are matched in the order in
/// which they were posted. After an error the group is broken: its other ranks get a RunError too.
class Backend {
 public:
  virtual ~Backend() = default;

  /// Begins to send `bytes` bytes to `peer` and returns at once. The memory must stay as it is until the message has
  /// been waited for; it may be null where `bytes` is 0.
  virtual std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                                   std::int64_t bytes) = 0;
  /// Gets ready to take `bytes` bytes from `peer` and returns at once.
  virtual std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                                      std::int64_t bytes) = 0;

  /// True where `run_native` does this kind of call. A backend may claim a sum only where its bits are tree_sum's
  /// (law 2).
  virtual bool has_native(CollectiveKind, ElementType) const { return false; }
  /// Does a call for which has_native is true and returns what it handed to, and took from, the network.
  virtual Traffic run_native(const NativeCall&) { return Traffic(); }

  /// The kernel's counters since the group was connected; unknown where there is no kernel in between, or none that
  /// counts. Throws PeerLostError where it did count, and a rank of the group has left since.
  virtual KernelTraffic kernel_traffic() const { return KernelTraffic(); }
  /// The bytes sent besides the payload: kernel_traffic().bytes_sent = payload + header_bytes_sent().
  virtual std::int64_t header_bytes_sent() const { return 0; }

  /// Leaves the group, so that the peers of a rank that failed notice at once. Nobody touches the memory of a message
  /// that was posted here once that message is destroyed; every later call throws RunError that gives the reason.
  virtual void close(const std::string& reason) = 0;
};

}  // namespace muonwalk
