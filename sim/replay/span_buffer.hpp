#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/replay/span.hpp"
#include "src/numerics/memory_meter.hpp"

namespace muonwalk::sim {

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

  /// Begins an entry; `close` ends it. The later ones end first.
  /// @{
  std::ptrdiff_t open_step(const std::string& title) { return open_named(SpanKind::step, title); }
  std::ptrdiff_t open_phase(const std::string& name) { return open_named(SpanKind::phase, name); }
  /// @}
  /// Messages belong to the call that is open. `group` is the group's number among the rank's groups.
  std::ptrdiff_t open_call(int group, const Call& call);
  /// Ends what open_step, open_phase or open_call began and gave this number.
  void close(std::ptrdiff_t entry);

  /// A message of the open call, which has just ended, to or from `peer`, a rank of the world.
  void message(int group, const Call& call, const Message& message, int peer);

  /// Hands over what was recorded since the last time. Everything must be closed.
  SpanBatch take();

  /// Nanoseconds on the clock of all spans.
  std::int64_t now_ns() const { return clock_(); }

 private:
  std::ptrdiff_t open(const Span& span);
  std::ptrdiff_t open_named(SpanKind kind, const std::string& name);

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
