#pragma once

#include <cstdint>
#include <string>

#include "src/numerics/element_type.hpp"

namespace muonwalk {

/// The kinds of calls on a Communicator.
enum class CollectiveKind { barrier, send, recv, all_gather, reduce_scatter, all_reduce, all_to_all, broadcast, wait };

/// "all_gather", for example.
const char* collective_name(CollectiveKind kind);

/// One call on a communicator, as a plan lists it, an observer is told of it, and a trace keeps it. A broadcast counts
/// its elements as in and out on every rank, as an all_reduce does; a barrier has none. An isend is a call of kind send
/// and an irecv one of kind recv, both of which end at once; the wait for it is another call, which has no elements.
struct Call {
  std::string group;  ///< "dp"
  CollectiveKind kind = CollectiveKind::barrier;
  ElementType type = ElementType::bytes;
  Index elements_in = 0;   ///< The elements that this rank puts in.
  Index elements_out = 0;  ///< The elements that this rank gets.
  int peer = -1;           ///< The root of a broadcast, or the other end of a send, recv or wait; −1 for everybody.

  friend bool operator==(const Call& a, const Call& b) {
    return a.group == b.group && a.kind == b.kind && a.type == b.type && a.elements_in == b.elements_in &&
           a.elements_out == b.elements_out && a.peer == b.peer;
  }
  friend bool operator!=(const Call& a, const Call& b) { return !(a == b); }
};

/// One line: "dp reduce_scatter of float32, 12 in, 6 out", with ", root 1" or ", peer 1" where there is one.
std::string text(const Call& call);

/// One message of a call, when it has been sent or has arrived.
struct Message {
  bool sent = false;       ///< It went out of this rank; otherwise it came in.
  int peer = 0;            ///< The other rank, as the group numbers it.
  std::int64_t bytes = 0;  ///< The payload, without headers.
  /// How many of its kind (of collectives, or from rank to rank) were posted the same way before.
  std::int64_t number = 0;
  std::int64_t began_ns = 0;       ///< When it was posted, by the clock of the first observer.
  bool from_rank_to_rank = false;  ///< It belongs to a send or recv, and to no collective.
};

/// Is told of every call on the communicators that it observes: tracing, progress, tests. A call whose arguments are
/// refused has not begun, and one that throws does not end.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  /// The arguments are checked, and nothing has moved yet.
  virtual void begins(const Call&) {}
  /// The call is about to return.
  virtual void ended(const Call&) {}
  /// A message of the call has been handed over (of a send, when it ends; of an isend, at once) or has arrived.
  virtual void moved(const Call&, const Message&) {}
  /// From here on the rank waits for rank `peer` of the group, in a call of this kind (for a posted transfer: send or
  /// recv).
  virtual void waits(CollectiveKind, int /*peer*/) {}
  /// It no longer does.
  virtual void goes_on() {}
  /// Nanoseconds on the clock by which messages are dated; 0 where nobody reads the dates.
  virtual std::int64_t now_ns() { return 0; }
};

}  // namespace muonwalk
