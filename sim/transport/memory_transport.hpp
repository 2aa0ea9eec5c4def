#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "src/comm/point_to_point.hpp"

namespace muonwalk::sim {

/// The meeting place of one group whose ranks are threads of one process: a receiver copies straight out of the
/// sender's memory, once, while other receivers copy at the same time. It knows no sockets, so it runs under
/// ThreadSanitizer and in a notebook.
class MemoryMeeting {
 public:
  /// `group` is what errors call the group. `timeout` limits each exchange.
  MemoryMeeting(int size, std::chrono::milliseconds timeout, const std::string& group = "threads");
  ~MemoryMeeting();

  /// The transport of one rank of the group; it shares ownership of the meeting's state.
  std::unique_ptr<Transport> transport(int rank);

  /// Wakes every waiting rank with a RunError that says `reason`, and fails all later exchanges the same way: a rank
  /// died.
  void abort(const std::string& reason);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace muonwalk::sim
