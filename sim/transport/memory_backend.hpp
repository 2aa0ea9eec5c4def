#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "src/comm/backend.hpp"

namespace muonwalk::sim {

/// A group whose ranks are threads of one process: a message is copied straight from the memory of one rank into that
/// of another, once, while other messages are copied at the same time. It knows no sockets, so it runs under
/// ThreadSanitizer and in a notebook.
class MemoryGroup {
 public:
  /// `name` is what errors call the group. `timeout` limits each wait for another rank.
  MemoryGroup(int size, std::chrono::milliseconds timeout, const std::string& name = "threads");
  ~MemoryGroup();

  /// What moves the bytes of one rank of the group.
  std::unique_ptr<Backend> backend(int rank);

  /// Wakes every waiting rank with a RunError that says `reason`, and fails all later calls the same way: a rank died.
  void abort(const std::string& reason);

  struct Shared;  ///< Everything that the ranks have in common.

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace muonwalk::sim
