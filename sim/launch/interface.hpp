#pragma once

#include <string>

namespace muonwalk::sim {

/// The numeric address of what `--interface` says: the name of an interface of this host, whose first address it is
/// (IPv4 before IPv6), or one of this host's addresses itself. Throws UsageError that lists the interfaces there are.
std::string interface_address(const std::string& name_or_address);

/// The interfaces of this host that are up and have an address, for a sentence: "lo, eth0".
std::string interface_names();

/// True when all addresses of a host are on the loopback. Throws UsageError where it has none.
bool is_loopback(const std::string& host);

}  // namespace muonwalk::sim
