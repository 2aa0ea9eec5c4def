#pragma once

namespace muonwalk::sim {

/// A network that only the ranks of one run can reach: a network namespace of its own with nothing in it but a
/// loopback. No other process of the machine can connect to a port there, or see that there is one.
///
/// Linux allows it to root, and to everybody where user namespaces may be made; elsewhere there is none.
class PrivateNetwork {
 public:
  /// Makes one where the system allows it. The calling process stays in the network that it is in; it must not have
  /// other threads.
  PrivateNetwork();
  ~PrivateNetwork();
  PrivateNetwork(const PrivateNetwork&) = delete;
  PrivateNetwork& operator=(const PrivateNetwork&) = delete;

  /// False where the system forbids it.
  bool exists() const { return network_ >= 0; }

  /// Moves the calling process into it; true when that was done. It keeps its user and groups, and what it may do with
  /// files. The process must not have other threads. The signal that it gets when its parent dies has to be asked for
  /// after this call.
  bool enter() const;

 private:
  void close_files();

  int users_ = -1;  // the user namespace that the network belongs to; none where root made it
  int network_ = -1;
};

}  // namespace muonwalk::sim
