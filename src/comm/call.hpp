#pragma once

#include <string>

#include "src/numerics/element_type.hpp"

namespace muonwalk {

/// The kinds of calls on a Communicator.
enum class CollectiveKind { barrier, send, recv, all_gather, reduce_scatter, all_reduce, all_to_all, broadcast };

/// "all_gather" and so on.
const char* collective_name(CollectiveKind kind);

/// One call on a communicator, as a plan lists it, an observer is told of it, and a trace keeps it. A broadcast counts
/// its elements as in and out on every rank, as an all_reduce does; a barrier has none.
struct Call {
  std::string group;                              ///< the group's name: "dp"
  CollectiveKind kind = CollectiveKind::barrier;  ///< what is called
  ElementType type = ElementType::bytes;          ///< of its elements
  Index elements_in = 0;                          ///< elements that this rank puts in
  Index elements_out = 0;                         ///< elements that it gets out
  int peer = -1;  ///< the root of a broadcast, the other end of a send or recv; −1: everybody

  /// All members are equal.
  friend bool operator==(const Call& a, const Call& b) {
    return a.group == b.group && a.kind == b.kind && a.type == b.type && a.elements_in == b.elements_in &&
           a.elements_out == b.elements_out && a.peer == b.peer;
  }
  friend bool operator!=(const Call& a, const Call& b) { return !(a == b); }
};

/// One line: "dp reduce_scatter of float32, 12 in, 6 out", with ", root 1" or ", peer 1" where there is one.
std::string text(const Call& call);

/// Is told of every call on the communicators that it observes: tracing, progress, tests. A call whose arguments are
/// refused has not begun, and one that throws does not end.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  /// The arguments are checked, and nothing has moved yet.
  virtual void begins(const Call&) {}
  /// The call is about to return.
  virtual void ended(const Call&) {}
};

}  // namespace muonwalk
