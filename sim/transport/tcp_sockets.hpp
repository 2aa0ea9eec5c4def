#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muonwalk::sim {

/// A connected TCP socket of this process. The inode tells whether its descriptor still means the same socket.
struct TcpSocket {
  int descriptor = -1;      ///< −1: none
  std::uint64_t inode = 0;  ///< The socket's, when it was found.
  std::string local;        ///< This end of the connection: "127.0.0.1:4711".
  std::string peer;         ///< The other end of it.
};

/// All connected TCP sockets of this process. Empty where there is no /proc.
std::vector<TcpSocket> connected_tcp_sockets();

/// An address of the system, a sockaddr_in or sockaddr_in6, as in TcpSocket. Empty when it is neither.
std::string address_text(const void* address, std::size_t bytes);

/// The two ends of a connection, by the descriptor of its socket, as in TcpSocket. Empty where it has none any more.
/// @{
std::string local_end(int descriptor);
std::string peer_end(int descriptor);
/// @}

/// Of two addresses of one kind, Gloo lets the one that comes first listen and the other one connect. It orders them by
/// what lies in memory: the addresses byte by byte, and where they are equal, the ports as numbers of this processor.
/// True when `own` connects. Each is a sockaddr_in or sockaddr_in6, perhaps with more behind it.
bool connects_to(const std::vector<char>& own, const std::vector<char>& theirs);

/// What the kernel counted as written to the socket, whether or not it has left yet, in bytes of the stream: no TCP or
/// IP headers, nothing twice. Nothing when it is closed, was replaced by another, or the system does not count bytes.
std::optional<std::int64_t> bytes_sent(const TcpSocket& socket);

/// True while the kernel holds bytes that were written to the socket and that the other end has not acknowledged yet:
/// whoever resets the connection now destroys them.
bool holds_unsent_bytes(const TcpSocket& socket);

}  // namespace muonwalk::sim
