#pragma once

// Private to sim/transport: a device has one, and its backends wait through it.

#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/transport/tcp_sockets.hpp"

namespace muonwalk::sim {

/// Ends waits that nobody else would end. Gloo tells those who wait that a connection was closed, but forgets a message
/// that its event loop was in the middle of handing over or taking in: whoever waits for that one would wait until its
/// timeout. So a thread looks at the sockets of all waits that last, several times a second.
class LostPeerWatch {
 public:
  LostPeerWatch() = default;
  ~LostPeerWatch();
  LostPeerWatch(const LostPeerWatch&) = delete;
  LostPeerWatch& operator=(const LostPeerWatch&) = delete;

  /// What is waited for.
  enum class End { sent, received };

  /// As buffer.waitSend or buffer.waitRecv: waits until the message is sent or received, at most for `timeout`, and
  /// throws what they throw. False when the message is not done and its connection, `socket`, is closed. A socket
  /// without a descriptor is not looked at.
  bool wait(gloo::transport::UnboundBuffer& buffer, End end, const TcpSocket& socket,
            std::chrono::milliseconds timeout);

 private:
  struct Wait;

  void look();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Wait*> waits_;
  std::thread thread_;
  bool ends_ = false;
  bool no_thread_ = false;  // the system allows none: then Gloo has the last word
};

}  // namespace muonwalk::sim
