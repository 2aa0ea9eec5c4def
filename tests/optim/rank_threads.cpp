#include "tests/optim/rank_threads.hpp"

#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/transport/memory_transport.hpp"

namespace muonwalk::test {
namespace {

constexpr std::chrono::seconds kTimeout{120};

/// The meetings of all groups of one kind, in the order of Grid::groups.
std::vector<std::unique_ptr<sim::MemoryMeeting>> meetings(const Grid& grid, GroupKind kind) {
  std::vector<std::unique_ptr<sim::MemoryMeeting>> all;
  for (std::size_t i = 0; i < grid.groups(kind).size(); ++i) {
    all.push_back(std::make_unique<sim::MemoryMeeting>(grid.size(kind), kTimeout));
  }
  return all;
}

/// The number of the group of this kind that `rank` belongs to.
std::size_t group_number(const Grid& grid, GroupKind kind, int rank) {
  const auto groups = grid.groups(kind);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] == grid.group(kind, rank)) return i;
  }
  throw std::logic_error("a rank is in no group");
}

}  // namespace

void run_ranks(const Grid& grid, const std::function<void(TestRank&)>& body, const WrapTransport& wrap) {
  const auto dp_meetings = meetings(grid, GroupKind::dp);
  const auto tp_meetings = meetings(grid, GroupKind::tp);
  std::mutex mutex;
  std::exception_ptr first;

  const auto run_one = [&](int rank) {
    const Place place = grid.place(rank);
    try {
      auto dp_transport = dp_meetings[group_number(grid, GroupKind::dp, rank)]->transport(place.dp);
      auto tp_transport = tp_meetings[group_number(grid, GroupKind::tp, rank)]->transport(place.tp);
      if (wrap) dp_transport = wrap(place, GroupKind::dp, std::move(dp_transport));
      if (wrap) tp_transport = wrap(place, GroupKind::tp, std::move(tp_transport));
      Ledger ledger;
      PointToPointCommunicator dp("dp", place.dp, grid.dp(), *dp_transport, ledger);
      PointToPointCommunicator tp("tp", place.tp, grid.tp(), *tp_transport, ledger);
      MemoryMeter meter;
      MeterScope scope(meter);
      TestRank test_rank{place, dp, tp, ledger, meter};
      body(test_rank);
    } catch (...) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!first) first = std::current_exception();
      }
      for (const auto& meeting : dp_meetings) meeting->abort("another rank failed");
      for (const auto& meeting : tp_meetings) meeting->abort("another rank failed");
    }
  };

  std::vector<std::thread> threads;
  for (int rank = 0; rank < grid.size(); ++rank) threads.emplace_back(run_one, rank);
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace muonwalk::test
