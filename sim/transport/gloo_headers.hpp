#pragma once

#include <cstdint>

namespace muonwalk::sim {

/// What a message over Gloo costs besides its payload, in bytes. Every message begins with an envelope: what the sender
/// thinks it is doing, and up to `inline_limit` bytes of the payload. The receiver compares it with its own call before
/// it takes anything. A longer payload follows in a message of its own whose Gloo slot holds its length, so that a
/// receiver that expects another length never gets to see it: Gloo, which ends the process on such a surprise, is never
/// surprised.
///
/// The sender of a message pays 2 preambles and an envelope, and 2 preambles more for a longer payload; its receiver
/// pays 1, and 1 more. So an envelope of send and recv leaves when the receiver has made ready for it and not before:
/// that needs no message of ours, since Gloo announces it. For envelopes of collectives there is always one place ready
/// for each peer, once it has been heard of, so that a small message needs no round trip.
struct GlooHeaders {
  static constexpr std::int64_t inline_limit = 4096;  ///< Payloads up to this size travel in the envelope's message.
  static constexpr std::int64_t envelope = 40;        ///< One of our own envelopes, without the payload in it.
  /// What Gloo writes before every message, and once more to announce it: "ready to send", "ready to receive", the
  /// data.
  static constexpr std::int64_t preamble = 48;
};

}  // namespace muonwalk::sim
