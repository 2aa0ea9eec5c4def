#include "sim/launch/frames.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace muonwalk::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::size_t kHeaderBytes = 5;
constexpr std::size_t kReadBytes = 64 << 10;

std::size_t announced_bytes(const char* header) {
  std::size_t bytes = 0;
  for (int i = 3; i >= 0; --i) bytes = bytes << 8 | static_cast<unsigned char>(header[i]);
  return bytes;
}

// Waits until `events` can be done; false when the deadline has passed.
bool wait_for(int descriptor, short events, steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
  pollfd polled = {descriptor, events, 0};
  if (left > 0) poll(&polled, 1, static_cast<int>(std::min<long>(left, 1000)));  // a signal only makes it look sooner
  return left > 0;
}

}  // namespace

FramedConnection::FramedConnection(OpenFile socket) : socket_(std::move(socket)) {
  fcntl(socket_.descriptor(), F_SETFL, fcntl(socket_.descriptor(), F_GETFL) | O_NONBLOCK);
}

std::size_t FramedConnection::room() const {
  const std::size_t taken = queued_.size() + kHeaderBytes;
  return taken >= most_queued_bytes ? 0 : std::min(most_frame_bytes, most_queued_bytes - taken);
}

bool FramedConnection::send(std::uint8_t type, const void* bytes, std::size_t count) {
  if (count > most_frame_bytes) throw std::logic_error("a frame of more than the most bytes that one may have");
  if (ended_) return true;
  if (count > room()) flush();
  if (ended_) return true;
  if (queued_.size() + kHeaderBytes + count > most_queued_bytes) return false;
  for (int i = 0; i < 4; ++i) queued_.push_back(static_cast<char>(count >> 8 * i & 0xff));
  queued_.push_back(static_cast<char>(type));
  if (count > 0) queued_.append(static_cast<const char*>(bytes), count);
  flush();
  return true;
}

void FramedConnection::flush() {
  while (!ended_ && !queued_.empty()) {
    const ssize_t sent = ::send(socket_.descriptor(), queued_.data(), queued_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) {
      // What the other end said before it went is read first.
      const std::string reason = std::strerror(errno);
      read_more();
      return end(reason);
    }
    queued_.erase(0, static_cast<std::size_t>(sent));
  }
}

bool FramedConnection::flush_within(milliseconds time) {
  const auto deadline = steady_clock::now() + time;
  for (flush(); !ended_ && !queued_.empty(); flush())
    if (!wait_for(descriptor(), POLLOUT, deadline)) return false;
  return !ended_;
}

void FramedConnection::read_more() {
  std::array<char, kReadBytes> chunk;
  while (!ended_) {
    // A whole frame is enough for now: what has not been read holds the sender back.
    if (arrived_.size() >= kHeaderBytes + most_frame_bytes) return;
    const ssize_t count = recv(socket_.descriptor(), chunk.data(), chunk.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (count < 0) return end(std::strerror(errno));
    if (count == 0) return end("closed by the other end");
    arrived_.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

std::optional<Frame> FramedConnection::receive() {
  read_more();
  if (arrived_.size() < kHeaderBytes) return std::nullopt;
  const std::size_t count = announced_bytes(arrived_.data());
  if (count > most_frame_bytes) {
    arrived_.clear();
    end("a frame is longer than any may be");
    return std::nullopt;
  }
  if (arrived_.size() - kHeaderBytes < count) return std::nullopt;
  const char* bytes = arrived_.data() + kHeaderBytes;
  Frame frame{static_cast<std::uint8_t>(arrived_[4]), {bytes, bytes + count}};
  arrived_.erase(0, kHeaderBytes + count);
  return frame;
}

std::optional<Frame> FramedConnection::receive_within(milliseconds time) {
  const auto deadline = steady_clock::now() + time;
  for (;;) {
    if (std::optional<Frame> frame = receive()) return frame;
    flush();
    if (ended_ || !wait_for(descriptor(), events(), deadline)) return receive();
  }
}

short FramedConnection::events() const { return static_cast<short>(queued_.empty() ? POLLIN : POLLIN | POLLOUT); }

void FramedConnection::end_when_host_is_silent(milliseconds timeout) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(descriptor(), level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
#if defined(__linux__)
  // Bytes on their way count from when they were sent, and an idle connection is probed: both end after the timeout.
  const int seconds = static_cast<int>(std::clamp<long>(timeout.count() / 1000 / 4, 1, 60));
  set(IPPROTO_TCP, TCP_KEEPIDLE, seconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, seconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(std::clamp<long>(timeout.count(), 1, 1 << 30)));
#else
  static_cast<void>(timeout);
#endif
}

bool FramedConnection::host_answers() const {
#if defined(__linux__)
  tcp_info info = {};
  socklen_t length = sizeof(info);
  if (getsockopt(descriptor(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
    return info.tcpi_retransmits == 0 && info.tcpi_probes == 0;
#endif
  return true;
}

void FramedConnection::end(const std::string& reason) {
  if (ended_) return;
  ended_ = true;
  reason_ = reason;
  socket_.close();
  queued_.clear();
}

}  // namespace muonwalk::sim
