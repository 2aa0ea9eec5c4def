#include "sim/launch/open_file.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace muonwalk::sim {

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void OpenFile::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

void end_when_host_is_silent(const OpenFile& socket, std::chrono::milliseconds timeout) {
  const auto set = [&](int level, int option, int value) {
    setsockopt(socket.descriptor(), level, option, &value, sizeof(value));
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

bool host_answers(const OpenFile& socket) {
#if defined(__linux__)
  tcp_info info = {};
  socklen_t length = sizeof(info);
  if (getsockopt(socket.descriptor(), IPPROTO_TCP, TCP_INFO, &info, &length) == 0)
    return info.tcpi_retransmits == 0 && info.tcpi_probes == 0;
#else
  static_cast<void>(socket);
#endif
  return true;
}

}  // namespace muonwalk::sim
