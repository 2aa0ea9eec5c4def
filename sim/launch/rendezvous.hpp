#pragma once

#include <chrono>
#include <string>

#include "sim/launch/launch.hpp"
#include "sim/launch/listener.hpp"
#include "src/io/unfinished.hpp"

namespace muonwalk::sim {

/// Rank 0's side of the meeting of all ranks: the listener and, where a session folder is all that they share, a file
/// in it with address and secret. The file is gone when `close` was called, when this object or the program ends.
class Rendezvous {
 public:
  /// Opens it. Throws UsageError where that can't be.
  explicit Rendezvous(const Launch& launch);
  ~Rendezvous() { close(); }
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// Lets the others in.
  Listener& listener() { return listener_; }
  /// The secret of the launch.
  const Secret& secret() const { return secret_; }
  /// Everybody is there. To be called before anybody is told so: a later run of the launch may use its folder.
  void close();

 private:
  Secret secret_;
  Listener listener_;
  std::string file_;
  Unfinished* unfinished_ = nullptr;
  int owner_process_;  // a forked process has a copy of this, and no file
};

/// What another rank gets out of the meeting.
struct Joined {
  OpenFile socket;  ///< the connection to rank 0, which has proven itself
  Secret secret;    ///< the launch's
};

/// Another rank's side: finds rank 0 and proves itself, until `timeout` is over. Throws RunError.
Joined join_rendezvous(const Launch& launch, std::chrono::milliseconds timeout);

}  // namespace muonwalk::sim
