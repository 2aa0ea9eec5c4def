#pragma once

#include <cstdint>
#include <type_traits>

#include "src/comm/ledger.hpp"

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

}  // namespace muonwalk::sim
