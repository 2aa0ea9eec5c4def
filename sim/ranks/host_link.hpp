#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muonwalk::sim {

/// The cable between the two hosts of a PrivateNetwork: a pair of interfaces, one on each host, with an address of its
/// own. What goes in at one end comes out at the other.

/// The address of a host: "10.77.0.1" for the first.
std::string host_address(int host);

/// What the kernel counted at this host's end since the cable was laid, in bytes, headers of Ethernet, IP and TCP too.
struct LinkBytes {
  std::int64_t sent = 0;      ///< what has left this host
  std::int64_t received = 0;  ///< what has come to it
};

/// The counters of the host that this process is on; nothing where it has no such cable.
std::optional<LinkBytes> link_bytes();
/// The counters when at least this many bytes have been sent, or after 2 seconds: other processes of the host may
/// still be sending.
std::optional<LinkBytes> link_bytes(std::int64_t sent_at_least);

/// Pulls the cable out at this process's host. False where there is none.
bool cut_host_link();

/// Lays the cable, from the network that this process is in to another one, an open file. False where the system does
/// not allow it, or knows no such interfaces.
bool make_host_link(int other_network);
/// Starts or stops an interface of the network that this process is in, "lo".
bool set_interface_up(const char* interface, bool up);
/// Gives this end its address, and starts it.
bool start_host_link(int host);

}  // namespace muonwalk::sim
