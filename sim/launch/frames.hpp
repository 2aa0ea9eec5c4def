#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/io/open_file.hpp"

namespace muonwalk::sim {

/// One message of a framed connection.
struct Frame {
  std::uint8_t type = 0;    ///< the two ends agree on what it means
  std::vector<char> bytes;  ///< the rest
};

/// Messages in order over a connected socket, without ever waiting unless asked to. On the wire a frame is its length
/// (4 bytes, least first), its type (1 byte) and its bytes. What the other end announces takes no memory; only what has
/// arrived does.
class FramedConnection {
 public:
  static constexpr std::size_t most_frame_bytes = 1 << 20;   ///< whoever announces a longer one is cut off
  static constexpr std::size_t most_queued_bytes = 4 << 20;  ///< no more wait to be sent

  /// Takes over the socket and makes it one that does not wait.
  explicit FramedConnection(OpenFile socket);

  /// Queues a frame and sends what goes. False where the queue has no room for it: nothing was queued, and it can be
  /// tried again later. Throws std::logic_error for a frame that is too long. Once the connection has ended, true:
  /// nobody reads it, and `ended` says so.
  bool send(std::uint8_t type, const void* bytes, std::size_t count);
  /// Sends the bytes of a text.
  bool send(std::uint8_t type, const std::string& bytes) { return send(type, bytes.data(), bytes.size()); }
  /// The longest frame that `send` would take now.
  std::size_t room() const;

  /// Sends what goes without waiting.
  void flush();
  /// Sends all, or as much as goes in this time; true when nothing is left.
  bool flush_within(std::chrono::milliseconds time);

  /// The next frame that has arrived whole, or none. What arrived before the connection ended is still returned.
  std::optional<Frame> receive();
  /// Waits for a frame and returns it; none when the time is over or the connection has ended.
  std::optional<Frame> receive_within(std::chrono::milliseconds time);

  /// True when nothing more can come: the other end has closed, the kernel has given up, or a frame was against the
  /// rules. Frames that came before are to be taken first.
  bool ended() const { return ended_; }
  /// Why: "closed by the other end", "Connection timed out"; empty while it has not.
  const std::string& reason() const { return reason_; }

  /// For poll(): the descriptor, −1 once it is closed.
  int descriptor() const { return socket_.descriptor(); }
  /// For poll(): what to wait for, POLLIN and, where something is queued, POLLOUT.
  short events() const;

  /// Lets the kernel end this connection when the other end's kernel has not answered for `timeout`, whether something
  /// is on its way or not. A process at the other end that computes, or is stopped, makes no difference: its kernel
  /// answers.
  void end_when_host_is_silent(std::chrono::milliseconds timeout);
  /// False when the kernel at the other end has not answered lately, though ours has sent it something, or asks
  /// (end_when_host_is_silent): its host is gone, or cannot be reached. True where that can't be told.
  bool host_answers() const;

 private:
  void read_more();
  void end(const std::string& reason);

  OpenFile socket_;
  std::string arrived_;  // and was not taken yet
  std::string queued_;   // and was not sent yet
  bool ended_ = false;
  std::string reason_;
};

}  // namespace muonwalk::sim
