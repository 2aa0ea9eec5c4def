#include "sim/transport/tcp_counters.hpp"

#if defined(__linux__)
// The C library's <netinet/tcp.h> ends before the byte counters, and the kernel's header collides with it; hence a file
// of its own that includes only the latter.
#include <dirent.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#endif

namespace muonwalk::sim {

#if defined(__linux__)

namespace {

bool read_info(int descriptor, tcp_info& info) {
  socklen_t length = sizeof(info);
  info = tcp_info();
  if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return false;
  // An old kernel fills in less than the header knows of.
  return length >= offsetof(tcp_info, tcpi_bytes_retrans) + sizeof(info.tcpi_bytes_retrans);
}

bool inode_of(int descriptor, std::uint64_t& inode) {
  struct stat status = {};
  if (fstat(descriptor, &status) != 0 || !S_ISSOCK(status.st_mode)) return false;
  inode = status.st_ino;
  return true;
}

}  // namespace

std::vector<TcpSocket> connected_tcp_sockets() {
  std::vector<TcpSocket> sockets;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return sockets;
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    TcpSocket socket;
    socket.descriptor = std::atoi(entry->d_name);
    sockaddr_storage peer = {};
    socklen_t length = sizeof(peer);
    tcp_info info;
    if (!inode_of(socket.descriptor, socket.inode)) continue;
    if (getpeername(socket.descriptor, reinterpret_cast<sockaddr*>(&peer), &length) != 0) continue;
    if (read_info(socket.descriptor, info)) sockets.push_back(socket);
  }
  closedir(folder);
  std::sort(sockets.begin(), sockets.end(),
            [](const TcpSocket& a, const TcpSocket& b) { return a.descriptor < b.descriptor; });
  return sockets;
}

bool read_tcp_counters(const TcpSocket& socket, TcpCounters& counters) {
  std::uint64_t inode = 0;
  tcp_info info;
  if (!inode_of(socket.descriptor, inode) || inode != socket.inode || !read_info(socket.descriptor, info)) return false;
  counters.sent = static_cast<std::int64_t>(info.tcpi_bytes_sent - info.tcpi_bytes_retrans) + info.tcpi_notsent_bytes;
  counters.received = static_cast<std::int64_t>(info.tcpi_bytes_received);
  return true;
}

bool holds_unsent_bytes(const TcpSocket& socket) {
  std::uint64_t inode = 0;
  int bytes = 0;
  if (!inode_of(socket.descriptor, inode) || inode != socket.inode) return false;
  return ioctl(socket.descriptor, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

#else

std::vector<TcpSocket> connected_tcp_sockets() { return {}; }
bool read_tcp_counters(const TcpSocket&, TcpCounters&) { return false; }
bool holds_unsent_bytes(const TcpSocket&) { return false; }

#endif

}  // namespace muonwalk::sim
