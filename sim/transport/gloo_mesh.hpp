#pragma once

// Private to sim/transport: gloo_device.cpp asks for a mesh, and gloo_backend.cpp then moves messages over it.

#include <gloo/context.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "sim/transport/key_store.hpp"
#include "sim/transport/secret.hpp"
#include "sim/transport/tcp_sockets.hpp"
#include "src/comm/backend.hpp"

namespace gloo::transport {
class Device;
}

namespace muonwalk::sim {

class LostPeerWatch;

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
///
/// The limit lets most messages of a small training run into their envelopes: lesson 20, whose messages have 8 and 16
/// KiB, takes three quarters of the time that it takes where they follow behind (8 ranks on 2 cores).
struct GlooHeaders {
  static constexpr std::int64_t inline_limit = 16384;  ///< Payloads up to this size travel in the envelope's message.
  static constexpr std::int64_t envelope = 40;         ///< One of our own envelopes, without the payload in it.
  /// What Gloo writes before every message, and once more to announce it: "ready to send", "ready to receive", the
  /// data.
  static constexpr std::int64_t preamble = 48;
};

/// One rank's connections to all others of its group, each of them proven to lead to that rank.
struct GlooMesh {
  std::shared_ptr<gloo::Context> context;  ///< All of its pairs are connected.
  std::vector<TcpSocket> sockets;          ///< One to each peer, in rank order; none where the system can't tell.
};

/// How often the ranks of a group connect anew after a process that is not a rank got in between.
constexpr int kMeshAttempts = 8;

/// True when files have run out. Gloo does not always say that it was they, so the system is asked as well.
bool no_more_files(const std::exception& error);

/// Connects rank `rank` of `size` with all others of `group`, whose addresses are on `key store`.
///
/// Gloo takes the first connection that comes to a rank's port, whoever made it. So the ranks write down, on the key
/// store, between which two ends each of them sees itself connected, and all read what all have written: when the two
/// ends of a connection disagree, somebody else has got in, and all of them drop everything and connect anew. Nothing
/// is sent to anybody before all ends agree. Then both ends of every connection prove that they know `secret`; where
/// one does not, all connect anew as well.
///
/// Throws StrangerError when a process that is not a rank was in between kMeshAttempts times; RunError when a rank has
/// not come within `timeout` or has failed.
GlooMesh connect_mesh(const std::shared_ptr<gloo::transport::Device>& device, const std::string& group, int rank,
                      int size, KeyStore& store, const Secret& secret, std::chrono::milliseconds timeout);

/// The backend of a group that is connected (gloo_backend.cpp). `device`, whose `watch` it is, is kept alive.
std::unique_ptr<Backend> over_mesh(const std::string& name, int rank, int size, std::shared_ptr<void> device,
                                   LostPeerWatch& watch, GlooMesh mesh, std::chrono::milliseconds timeout);

}  // namespace muonwalk::sim
