#pragma once

#include <memory>
#include <string>

#include "src/comm/backend.hpp"

namespace muonwalk::sim {

/// A group whose ranks are fibers of one thread: a message is copied once, straight from the memory of one rank into
/// that of another, by whoever posts its end last. Who waits for a message hands the turn on. There is no clock: a
/// message that nobody sends is noticed when nobody can go on (run_fibers).
class MemoryGroup {
 public:
  /// `name` is what errors call the group.
  MemoryGroup(int size, const std::string& name);
  ~MemoryGroup();

  /// What moves the bytes of one rank of the group.
  std::unique_ptr<Backend> backend(int rank);

  struct Shared;  ///< Everything that the ranks have in common.

 private:
  std::shared_ptr<Shared> shared_;
};

}  // namespace muonwalk::sim
