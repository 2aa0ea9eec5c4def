#pragma once

#include <cstdint>
#include <type_traits>

#include "src/comm/ledger.hpp"

namespace muonwalk::sim {

/// What a rank did for a while.
enum class SpanKind : std::uint8_t {
  step,   ///< a step of the lesson
  phase,  ///< a part of it that has a name (Rank::phase)
  call,   ///< one call on a communicator, from the call until it returns
  sent,   ///< one message of a call, while the exchange that carried it lasted
  received
};

/// One entry of a rank's SpanBuffer. It is copied as it is, from a rank that is a process to its parent.
struct Span {
  std::int64_t begin_ns = 0;       ///< The monotonic clock, which all processes of a machine share.
  std::int64_t end_ns = 0;         ///< The end, by the same clock.
  std::int64_t bytes = 0;          ///< a call: all that the rank handed to the transport; a message: its size
  std::int64_t elements_in = 0;    ///< a call: the elements that the rank puts in; 0 where nothing is put in
  std::int64_t elements_out = 0;   ///< a call: those that it gets out
  std::int64_t held_at_begin = 0;  ///< elements in the rank's matrices and flat buffers; not for messages
  std::int64_t held_at_end = 0;    ///< Those that are held at the end.
  std::int32_t name = -1;          ///< a step or phase: its number among the rank's names
  std::int32_t messages = 0;       ///< a call: messages that the rank sent
  std::int32_t peer = -1;          ///< a message: the other rank, as the world numbers it
  /// A message: how many of its kind (of send and recv, or of collectives) went the same way in this group before it.
  std::int32_t number = 0;
  SpanKind kind = SpanKind::step;  ///< what it is an entry of
  std::uint8_t group = 0;          ///< a call or message: the number of its group among the rank's groups
  CollectiveKind collective = CollectiveKind::barrier;  ///< a call: which one; a message: send, or of which collective
  ElementType type = ElementType::bytes;                ///< a call: of its elements

  /// The size of a call as nccl-tests count it: of all_gather the gathered whole, of reduce_scatter and all_to_all all
  /// that goes in, otherwise the buffer.
  std::int64_t message_bytes() const {
    const bool in = collective == CollectiveKind::all_to_all || elements_in > elements_out;
    return (in ? elements_in : elements_out) * element_size(type);
  }
};
static_assert(std::is_trivially_copyable_v<Span>, "spans go through a pipe as they lie in memory");

}  // namespace muonwalk::sim
