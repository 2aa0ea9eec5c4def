#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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

/// All messages that one rank sends and gets at one time in a collective, in the order in which observers are told of
/// them, and what it copies from itself to itself. Memory may be null where there are 0 bytes.
struct Exchange {
  /// A message out of this rank's memory, which stays as it is until the exchange is done, or into it.
  struct Part {
    int peer;    ///< The rank of the group that it goes to or comes from.
    void* data;  ///< Only read from where it goes out.
    std::int64_t bytes;
  };
  Envelope envelope = {};
  std::vector<Part> outgoing = {};
  std::vector<Part> incoming = {};
  const void* own = nullptr;  ///< This rank's own part.
  void* own_place = nullptr;  ///< Where that belongs: the same address where it lies there already.
  std::int64_t own_bytes = 0;
};

/// What a backend brings that moves the messages of a collective together, and adds up itself, because the memory may
/// be a device's. Its work may go on behind the caller's back, in order, until it is waited for.
class Exchanger {
 public:
  virtual ~Exchanger() = default;
  /// Begins to move all of this, after the ranks have found that they make the same call.
  virtual void exchange(const Exchange& all) = 0;
  /// Memory for what is to be added up, kept from call to call.
  virtual std::byte* room(std::int64_t bytes) = 0;
  /// Begins to add up as tree_sum does, to the bit: `count` elements of each part, in rank order (law 2). `out` may be
  /// one of the parts.
  virtual void sum(ElementType type, const std::vector<const std::byte*>& parts, Index count, void* out) = 0;
  /// Returns when all is done that was begun.
  virtual void wait() = 0;
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

  /// What does the work of collectives in place of single messages; null where messages are all there is.
  virtual Exchanger* exchanger() { return nullptr; }

  /// The bytes that the kernel counted as sent since the group was connected, headers included; nothing where there is
  /// no kernel in between, or none that counts. Throws PeerLostError where it did count, and a rank of the group has
  /// left since.
  virtual std::optional<std::int64_t> kernel_bytes_sent() const { return std::nullopt; }
  /// The bytes sent besides the payload: kernel_bytes_sent() = payload + header_bytes_sent().
  virtual std::int64_t header_bytes_sent() const { return 0; }

  /// Leaves the group, so that the peers of a rank that failed notice at once. Nobody touches the memory of a message
  /// that was posted here once that message is destroyed; every later call throws RunError that gives the reason.
  virtual void close(const std::string& reason) = 0;
};

}  // namespace muonwalk
