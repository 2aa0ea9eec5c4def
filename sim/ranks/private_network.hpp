#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/io/open_file.hpp"

namespace muonwalk::sim {

/// A network that only the ranks of one run can reach: a network namespace of its own with nothing in it but a
/// loopback. No other process of the machine can connect to a port there, or see that there is one.
///
/// It may also be two networks, as of two hosts: each with a loopback of its own, and joined by nothing but a cable:
/// a pair of interfaces, one on each host, with an address of its own. What goes in at one end comes out at the other.
///
/// Linux allows it to root, and to everybody where user namespaces may be made; elsewhere there is none.
class PrivateNetwork {
 public:
  /// The most hosts.
  static constexpr int kMostHosts = 2;

  /// Makes one of this many hosts where the system allows it. The calling process stays in the network that it is in;
  /// it must not have other threads.
  explicit PrivateNetwork(int hosts = 1);

  /// False where the system forbids it.
  bool exists() const { return static_cast<bool>(networks_[0]); }

  /// Moves the calling process into it, to one of its hosts; true when that was done. It keeps its user and groups, and
  /// what it may do with files. The process must not have other threads. The signal that it gets when its parent dies
  /// has to be asked for after this call.
  bool enter(int host = 0) const;

 private:
  OpenFile users_;  // the user namespace that the network belongs to; none where root made it
  OpenFile networks_[kMostHosts];
};

/// The address of a host of such a network, at its end of the cable: "10.77.0.1" for the first.
std::string host_address(int host);

/// What the kernel counted at this host's end since the cable was laid, in bytes, headers of Ethernet, IP and TCP too.
struct LinkBytes {
  std::int64_t sent = 0;      ///< what has left this host
  std::int64_t received = 0;  ///< what has come to it
};

/// The counters of the host that this process is on, when at least this many bytes have been sent, or after 2 seconds:
/// other processes of the host may still be sending. Nothing where it has no such cable.
std::optional<LinkBytes> link_bytes(std::int64_t sent_at_least = 0);

/// Pulls the cable out at this process's host. False where there is none.
bool cut_host_link();

}  // namespace muonwalk::sim
