#pragma once

#include <optional>

#include "src/comm/communicator.hpp"
#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// Matrices on their way to other ranks of a group, one at a time: a matrix must stay until it has been taken, and
/// before the next one goes, the one before has to be there. So the sender goes on with its work, and holds one matrix
/// more.
class Outbox {
 public:
  /// `group` must outlive it.
  explicit Outbox(Communicator& group) : group_(group) {}

  /// Waits for the matrix before, and posts this one to a rank of the group.
  void send(Matrix values, int peer);
  /// Waits until what was sent has been taken; at once where there is nothing.
  void wait();

 private:
  Communicator& group_;
  Matrix values_;
  std::optional<Transfer> under_way_;
};

/// A matrix of this shape from a rank of the group: waits until it is there.
Matrix received(Communicator& group, Index rows, Index cols, int peer);

}  // namespace muonwalk
