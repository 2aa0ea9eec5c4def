#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/comm/communicator.hpp"

namespace muonwalk {

/// Moves messages between the ranks of one group. This is all that a message backend has to bring: `sim/transport` has
/// one over Gloo and one through the memory of a process. Messages from one rank to another arrive in the order in
/// which they were sent. An implementation adds every message it accepts to the ledger.
class Transport {
 public:
  virtual ~Transport() = default;

  /// The call that a message belongs to. It travels with the message, so that ranks that are in different calls notice
  /// it before any of them takes the bytes of the other for its own.
  struct Call {
    CollectiveKind kind = CollectiveKind::barrier;  ///< what the rank called
    ElementType type = ElementType::bytes;          ///< of its elements
    /// Collectives that the rank has made in this group before this call.
    std::int64_t number = 0;
    /// The root of a broadcast; 0 otherwise.
    int root = 0;
  };

  /// One message out of or into a rank's memory. An exchange is given as a list, so that all of it may be under way at
  /// once.
  struct Outgoing {
    int peer = 0;                ///< the rank of the group that it goes to
    const void* data = nullptr;  ///< what is sent; may be null where bytes is 0
    std::int64_t bytes = 0;      ///< how much of it
  };
  /// The other direction: a message out of another rank's memory into this one's.
  struct Incoming {
    int peer = 0;            ///< the rank of the group that it comes from
    void* data = nullptr;    ///< where it is put; may be null where bytes is 0
    std::int64_t bytes = 0;  ///< how much is expected
  };

  /// Sends and receives all of the messages, at most one from and one to each peer; returns when all have arrived and
  /// the memory of the outgoing ones may be used again. Throws RunError when a peer's message has another size than
  /// expected or belongs to another call (both are named), when a peer is gone, and after the timeout. After a RunError
  /// the group is broken: its other ranks get a RunError too, and so does every later exchange.
  virtual void exchange(const Call& call, const std::vector<Outgoing>& outgoing, const std::vector<Incoming>& incoming,
                        Ledger& ledger) = 0;

 protected:
  /// What an implementation throws when `peer` sent `peer_bytes` in `peer_call` while `rank`, in `call`, expected
  /// `bytes`: one sentence that names the group, both ranks and what differs. Empty when the two agree.
  static std::string mismatch(const std::string& group, int rank, const Call& call, std::int64_t bytes, int peer,
                              const Call& peer_call, std::int64_t peer_bytes);
};

/// The collectives written plainly as messages: every rank sends to every other what that one needs, then computes
/// locally. Sums need room for what the others send: (n − 1) · piece elements, kept from call to call and not counted
/// by the MemoryMeter, as the working memory inside a communication library never is.
class PointToPointCommunicator : public Communicator {
 public:
  /// `transport` and `ledger` must outlive the communicator.
  PointToPointCommunicator(std::string group, int rank, int size, Transport& transport, Ledger& ledger);

 protected:
  void do_barrier() override;
  void do_send(const void* values, Index count, ElementType type, int peer) override;
  void do_recv(void* values, Index count, ElementType type, int peer) override;
  void do_all_gather_v(const void* shard, const std::vector<Index>& counts, ElementType type, void* out) override;
  void do_reduce_scatter_v(const void* in, const std::vector<Index>& counts, ElementType type, void* out) override;
  void do_all_reduce(void* values, Index count, ElementType type) override;
  void do_all_to_all_v(const void* in, const std::vector<Index>& send_counts, void* out,
                       const std::vector<Index>& recv_counts, ElementType type) override;
  void do_broadcast(void* values, Index count, ElementType type, int root) override;

 private:
  // What all ranks of the group call together gets a number; a send and its recv share that of the last one.
  Transport::Call collective(CollectiveKind kind, ElementType type, int root = 0);
  Transport::Call message(CollectiveKind kind, ElementType type) const;
  // Every rank sends to every other and receives from it. Memory of rank r: base + begin(r), of size bytes(r).
  void gather_pieces(const Transport::Call& call, const std::vector<Index>& begins, ElementType type, std::byte* out);
  void reduce_pieces(const Transport::Call& call, const std::byte* in, const std::vector<Index>& begins,
                     ElementType type, void* out);

  Transport* transport_;
  std::int64_t collectives_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace muonwalk
