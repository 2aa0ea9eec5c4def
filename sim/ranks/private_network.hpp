#pragma once

#include "sim/launch/open_file.hpp"

namespace muonwalk::sim {

/// A network that only the ranks of one run can reach: a network namespace of its own with nothing in it but a
/// loopback. No other process of the machine can connect to a port there, or see that there is one.
///
/// It may also be two networks, as of two hosts: each with a loopback of its own, and joined by nothing but a cable
/// (host_link.hpp).
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

}  // namespace muonwalk::sim
