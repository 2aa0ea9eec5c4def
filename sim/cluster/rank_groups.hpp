#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "sim/cluster/options.hpp"
#include "sim/cluster/progress.hpp"
#include "sim/recording/span_buffer.hpp"
#include "sim/transport/gloo_transport.hpp"
#include "sim/transport/memory_transport.hpp"
#include "src/comm/point_to_point.hpp"

namespace muonwalk::sim {

/// A message that a rank has handed to a transport, for those who record it.
struct SentMessage {
  int from = 0;                                   ///< the sender, a rank of the world
  int to = 0;                                     ///< the receiver, a rank of the world
  GroupKind group = GroupKind::dp;                ///< the kind of group in which it was sent
  CollectiveKind kind = CollectiveKind::barrier;  ///< the call that it belongs to
  ElementType type = ElementType::bytes;          ///< of its elements
  std::int64_t bytes = 0;                         ///< its size, without headers
};

/// One rank's three communicators (dp, tp, pp), what they talk over, and what they count.
struct RankGroups {
  Ledger ledger;                                               ///< what it sent and received in all three
  MemoryMeter memory;                                          ///< what it holds
  std::array<std::unique_ptr<Transport>, 3> transports;        ///< [GroupKind]
  std::array<std::unique_ptr<Communicator>, 3> communicators;  ///< [GroupKind], each over its transport
  std::array<GlooTransport*, 3> gloo = {};                     ///< the same transports, where they are Gloo's
  std::unique_ptr<GlooDevice> device;                          ///< what Gloo's transports run on; else null
  std::unique_ptr<SpanBuffer> trace;                           ///< records its calls and messages; null unless traced
  /// Told of every message that this rank sends, when it has been sent; empty when nobody records the run.
  std::function<void(const SentMessage&)> on_sent;

  /// The one of this kind of group.
  Communicator& communicator(GroupKind kind) { return *communicators[static_cast<std::size_t>(kind)]; }
  /// Closes every socket, so that the peers of a rank that failed notice at once.
  void close();
};

/// All kinds of groups, in the order of GroupKind.
constexpr std::array<GroupKind, 3> kGroupKinds = {GroupKind::dp, GroupKind::tp, GroupKind::pp};

/// A notice board with room for what the ranks of a grid write while their groups connect.
std::unique_ptr<Board> board_for(const Grid& grid);

/// Connects one rank to its groups over Gloo: a context of its own for each group.
std::unique_ptr<RankGroups> connect_over_gloo(const Grid& grid, int rank, Board& board, ProgressBoard& progress,
                                              std::chrono::milliseconds timeout);

/// The in-memory meetings of all groups of a grid.
struct MemoryMeetings {
  /// One meeting for every group of the grid. A rank that waits for others longer than `timeout` gives up.
  MemoryMeetings(const Grid& grid, std::chrono::milliseconds timeout);
  /// The groups of one rank.
  std::unique_ptr<RankGroups> join(int rank, ProgressBoard& progress);
  /// Breaks all groups: whoever waits in one of them gets a RunError that gives the reason.
  void abort(const std::string& reason);

  Grid grid;                                                            ///< whose groups meet
  std::array<std::vector<std::unique_ptr<MemoryMeeting>>, 3> meetings;  ///< [kind][group], as Grid::groups orders them
};

}  // namespace muonwalk::sim
