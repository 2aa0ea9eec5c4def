#include "sim/cluster/rank_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/cluster/traced_communicator.hpp"

namespace muonwalk::sim {
namespace {

// Passes every exchange on and marks in the rank's progress slot that it waits for others meanwhile. Whoever records or
// traces the run is told of what was sent and received.
class WatchedTransport : public Transport {
 public:
  WatchedTransport(std::unique_ptr<Transport> inner, ProgressSlot& slot, const RankGroups& groups, GroupKind kind,
                   std::vector<int> members, int rank)
      : inner_(std::move(inner)),
        slot_(&slot),
        groups_(&groups),
        kind_(kind),
        members_(std::move(members)),
        rank_(rank) {}

  void exchange(const Call& call, const std::vector<Outgoing>& outgoing, const std::vector<Incoming>& incoming,
                Ledger& ledger) override {
    SpanBuffer* trace = groups_->trace.get();
    const std::int64_t began = trace != nullptr ? SpanBuffer::now_ns() : 0;
    slot_->in_exchange = true;
    inner_->exchange(call, outgoing, incoming, ledger);
    slot_->in_exchange = false;
    ++slot_->signs;
    if (trace != nullptr) {
      for (const Outgoing& message : outgoing)
        trace->message(SpanKind::sent, kind_, member(message.peer), message.bytes, began);
      for (const Incoming& message : incoming)
        trace->message(SpanKind::received, kind_, member(message.peer), message.bytes, began);
    }
    if (!groups_->on_sent) return;
    for (const Outgoing& message : outgoing)
      groups_->on_sent({rank_, member(message.peer), kind_, call.kind, call.type, message.bytes});
  }

 private:
  int member(int peer) const { return members_[static_cast<std::size_t>(peer)]; }

  std::unique_ptr<Transport> inner_;
  ProgressSlot* slot_;
  const RankGroups* groups_;
  GroupKind kind_;
  std::vector<int> members_;  // the group's ranks, as the world numbers them
  int rank_;
};

// The number of the group of this kind that holds `rank`, in the order of Grid::groups.
int group_number(const Grid& grid, GroupKind kind, int rank) {
  const auto groups = grid.groups(kind);
  const auto holds = [rank](const std::vector<int>& group) { return std::count(group.begin(), group.end(), rank) > 0; };
  return static_cast<int>(std::find_if(groups.begin(), groups.end(), holds) - groups.begin());
}

int coordinate(const Place& place, GroupKind kind) {
  return kind == GroupKind::dp ? place.dp : kind == GroupKind::tp ? place.tp : place.pp;
}

void add_group(RankGroups& groups, const Grid& grid, int rank, GroupKind kind, std::unique_ptr<Transport> transport,
               ProgressSlot& slot) {
  const auto k = static_cast<std::size_t>(kind);
  groups.transports[k] =
      std::make_unique<WatchedTransport>(std::move(transport), slot, groups, kind, grid.group(kind, rank), rank);
  groups.communicators[k] = std::make_unique<TracedCommunicator>(
      kind, coordinate(grid.place(rank), kind), grid.size(kind), *groups.transports[k], groups.ledger, groups.trace);
}

}  // namespace

void RankGroups::close() {
  for (GlooTransport* transport : gloo)
    if (transport != nullptr) transport->close();
}

std::unique_ptr<Board> board_for(const Grid& grid) {
  const auto ranks = static_cast<std::size_t>(grid.size());
  const int largest_group = std::max({grid.dp(), grid.tp(), grid.pp()});
  // Gloo writes two keys a rank and group: the name of its machine and its addresses.
  return std::make_unique<Board>(2 * kGroupKinds.size() * ranks, GlooDevice::board_value_bytes(largest_group));
}

std::unique_ptr<RankGroups> connect_over_gloo(const Grid& grid, int rank, Board& board, ProgressBoard& progress,
                                              std::chrono::milliseconds timeout) {
  auto groups = std::make_unique<RankGroups>();
  groups->device = std::make_unique<GlooDevice>();
  for (GroupKind kind : kGroupKinds) {
    const std::string name = fmt::format("{} {}", group_name(kind), group_number(grid, kind, rank));
    auto transport = groups->device->connect(name, coordinate(grid.place(rank), kind), grid.size(kind), board, timeout);
    groups->gloo[static_cast<std::size_t>(kind)] = transport.get();
    add_group(*groups, grid, rank, kind, std::move(transport), progress.slot(rank));
  }
  return groups;
}

MemoryMeetings::MemoryMeetings(const Grid& the_grid, std::chrono::milliseconds timeout) : grid(the_grid) {
  for (GroupKind kind : kGroupKinds)
    for (std::size_t g = 0; g < grid.groups(kind).size(); ++g)
      meetings[static_cast<std::size_t>(kind)].push_back(std::make_unique<MemoryMeeting>(grid.size(kind), timeout));
}

std::unique_ptr<RankGroups> MemoryMeetings::join(int rank, ProgressBoard& progress) {
  auto groups = std::make_unique<RankGroups>();
  for (GroupKind kind : kGroupKinds) {
    auto& meeting = meetings[static_cast<std::size_t>(kind)][static_cast<std::size_t>(group_number(grid, kind, rank))];
    add_group(*groups, grid, rank, kind, meeting->transport(coordinate(grid.place(rank), kind)), progress.slot(rank));
  }
  return groups;
}

void MemoryMeetings::abort(const std::string& reason) {
  for (auto& kind : meetings)
    for (auto& meeting : kind) meeting->abort(reason);
}

}  // namespace muonwalk::sim
