#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "sim/cluster/options.hpp"
#include "sim/cluster/progress.hpp"
#include "sim/trace/span_buffer.hpp"
#include "sim/transport/gloo_transport.hpp"
#include "sim/transport/memory_transport.hpp"
#include "src/comm/point_to_point.hpp"

namespace muonwalk::sim {

/// A message that a rank has handed to a transport, for those who record it.
struct SentMessage {
  int from = 0;   ///< ranks of the world
  int to = 0;
  GroupKind group = GroupKind::dp;
  CollectiveKind kind = CollectiveKind::barrier;
  ElementType type = ElementType::bytes;
  std::int64_t bytes = 0;
};

/// One rank's three communicators (dp, tp, pp), what they talk over, and what they count.
struct RankGroups {
  Ledger ledger;
  MemoryMeter memory;
  std::array<std::unique_ptr<Transport>, 3> transports;
  std::array<std::unique_ptr<Communicator>, 3> communicators;
  std::array<GlooTransport*, 3> gloo = {};   ///< the same transports, where they are Gloo's
  std::unique_ptr<GlooDevice> device;
  std::unique_ptr<SpanBuffer> trace;         ///< where its calls and messages are recorded; null unless the run is traced
  /// Told of every message that this rank sends, when it has been sent; empty when nobody records the run.
  std::function<void(const SentMessage&)> on_sent;

  Communicator& communicator(GroupKind kind) { return *communicators[static_cast<std::size_t>(kind)]; }
  /// Closes every socket, so that the peers of a rank that failed notice at once.
  void close();
};

constexpr std::array<GroupKind, 3> kGroupKinds = {GroupKind::dp, GroupKind::tp, GroupKind::pp};

/// A notice board with room for what the ranks of a grid write while their groups connect.
std::unique_ptr<Board> board_for(const Grid& grid);

/// Connects one rank to its groups over Gloo: a context of its own for each group.
std::unique_ptr<RankGroups> connect_over_gloo(const Grid& grid, int rank, Board& board, ProgressBoard& progress,
                                              std::chrono::milliseconds timeout);

/// The in-memory meetings of all groups of a grid.
struct MemoryMeetings {
  MemoryMeetings(const Grid& grid, std::chrono::milliseconds timeout);
  /// The groups of one rank.
  std::unique_ptr<RankGroups> join(int rank, ProgressBoard& progress);
  void abort(const std::string& reason);

  Grid grid;
  std::array<std::vector<std::unique_ptr<MemoryMeeting>>, 3> meetings;   ///< [kind][group], as Grid::groups orders them
};

}  // namespace muonwalk::sim
