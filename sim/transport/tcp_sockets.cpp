#include "sim/transport/tcp_sockets.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#if defined(__linux__)
// The C library's <netinet/tcp.h> ends before the byte counters, and the kernel's header collides with it; hence a file
// of its own that includes only the latter.
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <sys/ioctl.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace muonwalk::sim {

std::string address_text(const void* address, std::size_t bytes) {
  char text[INET6_ADDRSTRLEN] = {};
  sockaddr_in four = {};
  sockaddr_in6 six = {};
  if (bytes < sizeof(four)) return "";
  std::memcpy(&four, address, sizeof(four));
  if (four.sin_family == AF_INET && inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text)) != nullptr)
    return std::string(text) + ':' + std::to_string(ntohs(four.sin_port));
  if (bytes < sizeof(six)) return "";
  std::memcpy(&six, address, sizeof(six));
  if (six.sin6_family == AF_INET6 && inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text)) != nullptr)
    return '[' + std::string(text) + "]:" + std::to_string(ntohs(six.sin6_port));
  return "";
}

static std::string end_of(int descriptor, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  if (ask(descriptor, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  return address_text(&address, sizeof(address));
}

std::string local_end(int descriptor) { return end_of(descriptor, getsockname); }
std::string peer_end(int descriptor) { return end_of(descriptor, getpeername); }

// The bytes of an address, and its port.
static std::pair<std::string, in_port_t> order_of(const std::vector<char>& address) {
  sockaddr_in6 six = {};
  sockaddr_in four = {};
  std::memcpy(&six, address.data(), std::min(address.size(), sizeof(six)));
  std::memcpy(&four, &six, sizeof(four));
  if (six.sin6_family == AF_INET6)
    return {{reinterpret_cast<char*>(&six.sin6_addr), sizeof(six.sin6_addr)}, six.sin6_port};
  return {{reinterpret_cast<char*>(&four.sin_addr), sizeof(four.sin_addr)}, four.sin_port};
}

bool connects_to(const std::vector<char>& own, const std::vector<char>& theirs) {
  return order_of(own) > order_of(theirs);
}

#if defined(__linux__)

namespace {

bool read_info(int descriptor, tcp_info& info) {
  socklen_t length = sizeof(info);
  info = tcp_info();
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  // An old kernel fills in less than the header knows of.
  return length >= offsetof(tcp_info, tcpi_bytes_retrans) + sizeof(info.tcpi_bytes_retrans);
}

// 0 where the descriptor is not a socket. The link is read instead of the descriptor itself, which may be another
// rank's that is just closing it where a test's ranks are threads.
std::uint64_t inode_of(int descriptor) {
  char target[64] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  if (readlink(link.c_str(), target, sizeof(target) - 1) < 0 || std::strncmp(target, "socket:[", 8) != 0) return 0;
  return std::strtoull(target + 8, nullptr, 10);
}

bool is_still_there(const TcpSocket& socket) {
  return socket.inode != 0 && inode_of(socket.descriptor) == socket.inode;
}

}  // namespace

std::vector<TcpSocket> connected_tcp_sockets() {
  std::vector<TcpSocket> sockets;
  std::error_code unreadable;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unreadable)) {
    const int descriptor = std::atoi(entry.path().filename().c_str());
    const TcpSocket socket{descriptor, inode_of(descriptor), local_end(descriptor), peer_end(descriptor)};
    if (socket.inode != 0 && !socket.peer.empty() && !socket.local.empty()) sockets.push_back(socket);
  }
  return sockets;
}

std::optional<std::int64_t> bytes_sent(const TcpSocket& socket) {
  tcp_info info;
  if (!is_still_there(socket) || !read_info(socket.descriptor, info)) return std::nullopt;
  return static_cast<std::int64_t>(info.tcpi_bytes_sent - info.tcpi_bytes_retrans) + info.tcpi_notsent_bytes;
}

bool holds_unsent_bytes(const TcpSocket& socket) {
  int bytes = 0;
  return is_still_there(socket) && ioctl(socket.descriptor, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

#else

std::vector<TcpSocket> connected_tcp_sockets() { return {}; }
std::optional<std::int64_t> bytes_sent(const TcpSocket&) { return std::nullopt; }
bool holds_unsent_bytes(const TcpSocket&) { return false; }

#endif

}  // namespace muonwalk::sim
