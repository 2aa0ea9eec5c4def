#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "src/comm/ledger.hpp"
#include "src/numerics/memory_meter.hpp"

namespace muonwalk::sim {

/// What a rank did for a while.
enum class SpanKind : std::uint8_t {
  step,     ///< A step of the lesson.
  phase,    ///< A part of a step that has a name (Rank::phase).
  call,     ///< One call on a communicator, from the call until it returns.
  sent,     ///< One message of a call, while the exchange that carried it lasted.
  received  ///< The same, at its receiver.
};

/// One entry of a rank's SpanBuffer. It is copied as it is, from a rank that is a process to its parent.
struct Span {
  std::int64_t begin_ns = 0;       ///< The monotonic clock, which all processes of a machine share.
  std::int64_t end_ns = 0;         ///< The end, by the same clock.
  std::int64_t bytes = 0;          ///< Of a call: all that the rank handed to the transport; of a message: its size.
  std::int64_t elements_in = 0;    ///< Of a call: the elements that the rank puts in.
  std::int64_t elements_out = 0;   ///< Of a call: the elements that it gets out.
  std::int64_t held_at_begin = 0;  ///< The elements in the rank's matrices and flat buffers; not for messages.
  std::int64_t held_at_end = 0;    ///< The same at the end.
  std::int32_t name = -1;          ///< Of a step or phase: its number among the rank's names.
  std::int32_t messages = 0;       ///< Of a call: how many messages the rank sent.
  std::int32_t peer = -1;          ///< Of a message: the other rank, as the world numbers it.
  /// Of a message: how many of its kind (send and recv, or collectives) went the same way in this group before it.
  std::int32_t number = 0;
  SpanKind kind = SpanKind::step;  ///< What the entry is of.
  std::uint8_t group = 0;          ///< Of a call or message: the number of its group among the rank's groups.
  CollectiveKind collective = CollectiveKind::barrier;  ///< Of a call: which one; of a message: send, or its call's.
  ElementType type = ElementType::bytes;                ///< Of a call: the type of its elements.

  /// The size of a call as nccl-tests count it: of all_gather the gathered whole, of reduce_scatter and all_to_all all
  /// that goes in, otherwise the buffer.
  std::int64_t message_bytes() const {
    const bool in = collective == CollectiveKind::all_to_all || elements_in > elements_out;
    return (in ? elements_in : elements_out) * element_size(type);
  }
};
static_assert(std::is_trivially_copyable_v<Span>, "spans go through a pipe as they lie in memory");

/// Nanoseconds on a clock.
using ClockNs = std::int64_t (*)();
/// On std::chrono::steady_clock.
std::int64_t steady_clock_ns();

/// What a rank keeps of its run by default: 5 MB.
constexpr int kTraceEvents = 1 << 16;

/// What one rank did in some time, as its SpanBuffer hands it over.
struct SpanBatch {
  std::vector<Span> spans;         ///< All have ended; they are in the order in which they began.
  std::vector<std::string> names;  ///< All names so far.
  std::int64_t dropped = 0;        ///< How many entries so far had no room.
  std::int64_t full_since_ns = 0;  ///< When the first of them would have begun; 0: none was dropped.
};

/// Records what one rank does, for a trace: steps, their phases, calls on communicators, and messages. It holds
/// `capacity` entries and no more, in the whole run; those that have no room are counted. A rank does one
/// thing at a time, so there is no lock.
class SpanBuffer {
 public:
  /// `memory` is asked how much the rank holds, and must outlive the buffer.
  SpanBuffer(std::size_t capacity, const MemoryMeter& memory, ClockNs clock = steady_clock_ns)
      : room_(capacity), memory_(&memory), clock_(clock) {}

  /// What an entry without room is called; closing it does nothing.
  static constexpr std::ptrdiff_t kNoRoom = -1;

  /// Begins a step or a phase; `close` ends it. The later ones end first.
  std::ptrdiff_t open(SpanKind kind, const std::string& name);
  /// Begins a call. Messages belong to the call that is open. `group` is the group's number among the rank's groups.
  std::ptrdiff_t open_call(int group, const Call& call);
  /// Ends what began and got this number.
  void close(std::ptrdiff_t entry);

  /// A message of the open call, which has just ended, to or from `peer`, a rank of the world.
  void message(int group, const Call& call, const Message& message, int peer);

  /// Hands over what was recorded since the last time. Everything must be closed.
  SpanBatch take();

  /// Nanoseconds on the clock of all spans.
  std::int64_t now_ns() const { return clock_(); }

 private:
  std::ptrdiff_t add(const Span& span);

  std::size_t room_;
  const MemoryMeter* memory_;
  ClockNs clock_;
  std::vector<Span> spans_;
  std::vector<std::string> names_;
  std::ptrdiff_t open_call_ = kNoRoom;
  std::int64_t dropped_ = 0;
  std::int64_t full_since_ns_ = 0;
};

}  // namespace muonwalk::sim
