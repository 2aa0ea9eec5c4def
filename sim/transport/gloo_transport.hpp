#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/transport/board.hpp"
#include "src/comm/point_to_point.hpp"

namespace muonwalk::sim {

/// What the kernel counted on the TCP sockets of one group on this rank (Linux; `known` is false elsewhere).
struct KernelTraffic {
  bool known = false;               ///< the kernel could be asked
  std::int64_t bytes_sent = 0;      ///< everything handed to TCP, headers included
  std::int64_t bytes_received = 0;  ///< everything that arrived over TCP, headers included
};

/// A Transport over a Gloo context of its own.
///
/// Every message begins with an envelope: what the sender thinks it is doing, and up to inline_bytes of the payload.
/// The receiver keeps a buffer ready for the next envelope of each peer it has heard of, so that a small message needs
/// no round trip, and compares the envelope with its own call before it takes anything. A longer payload follows in a
/// message of its own whose Gloo slot holds its length, so that a receiver that expects another length never gets to
/// see it: Gloo, which ends the process on such a surprise, is never surprised.
class GlooTransport : public Transport {
 public:
  /// Payloads up to this size travel in the envelope's message.
  static constexpr std::int64_t inline_bytes = 4096;
  /// One of our own envelopes, without the payload in it.
  static constexpr std::int64_t envelope_bytes = 40;
  /// What Gloo writes before every message, and once more to announce it: "ready to send", "ready to receive", the
  /// data.
  static constexpr std::int64_t preamble_bytes = 48;

  /// The kernel's counters of this group's sockets since the group was connected. Meaningful when each rank is a
  /// process: unknown when there are other ranks in this one. Waits up to 100 ms for bytes that Gloo has not handed to
  /// the kernel yet.
  virtual KernelTraffic kernel_traffic() const = 0;
  /// The bytes of headers that were sent besides the payload: those of Gloo (48 bytes a preamble) and our own
  /// envelopes. Exact: kernel_traffic().bytes_sent = payload + header_bytes_sent() once the peers have received
  /// everything.
  virtual std::int64_t header_bytes_sent() const = 0;
  /// Closes the sockets, so that the peers of a rank that failed notice at once. Every later exchange throws RunError.
  virtual void close() = 0;
};

/// One rank's Gloo device: its event loop and the address it listens on (127.0.0.1 and no other).
class GlooDevice {
 public:
  /// Starts the event loop. Must not be called before the last fork. The event loop's thread is scheduled as
  /// SCHED_BATCH: it no longer interrupts a rank that computes for every message, which makes a barrier between more
  /// ranks than cores about ten times faster. The calling thread keeps its policy; with both as SCHED_BATCH a busy
  /// machine lets a rank wait for a whole tick of 4 ms now and then. The process ignores SIGPIPE from here on: a peer
  /// that is gone is an error of the call and not the end of the process.
  GlooDevice();
  ~GlooDevice();
  GlooDevice(const GlooDevice&) = delete;
  GlooDevice& operator=(const GlooDevice&) = delete;

  /// Connects this rank to the others of a group. `name` is unique among the groups of the run ("dp 1"); the addresses
  /// are exchanged through `board`, which needs one key of board_value_bytes(size) for each rank of each group. Throws
  /// RunError when a rank has not come after `timeout`, which is also the limit of every later exchange. With size 1
  /// nothing is opened. The transport keeps the device alive.
  std::unique_ptr<GlooTransport> connect(const std::string& name, int rank, int size, Board& board,
                                         std::chrono::milliseconds timeout);

  /// How many keys connecting a group of `size` ranks writes to the board, at most (Debian's Gloo: two a rank).
  static std::size_t board_keys(int size);
  /// The longest value among them, in bytes.
  static std::size_t board_value_bytes(int size);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muonwalk::sim
