#include "tests/optim/rank_threads.hpp"

#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "sim/transport/memory_backend.hpp"

namespace muonwalk::test {
namespace {

constexpr std::chrono::seconds kTimeout{120};

using MemoryGroups = std::map<int, std::unique_ptr<sim::MemoryGroup>>;  // by the lowest rank

/// All groups of this name.
MemoryGroups groups_named(const Grid& grid, const std::string& name) {
  MemoryGroups all;
  for (const Group& group : grid.groups(name)) {
    all[group.ranks.front()] = std::make_unique<sim::MemoryGroup>(group.size(), kTimeout);
  }
  return all;
}

}  // namespace

void run_ranks(const Grid& grid, const std::function<void(TestRank&)>& body, const WrapBackend& wrap) {
  const MemoryGroups dp_groups = groups_named(grid, "dp");
  const MemoryGroups tp_groups = groups_named(grid, "tp");
  const MemoryGroups worlds = groups_named(grid, "world");
  std::mutex mutex;
  std::exception_ptr first;

  const auto run_one = [&](int rank) {
    const Place place = grid.place(rank);
    try {
      auto dp_backend = dp_groups.at(grid.group("dp", rank).ranks.front())->backend(place.dp);
      auto tp_backend = tp_groups.at(grid.group("tp", rank).ranks.front())->backend(place.tp);
      auto world_backend = worlds.at(0)->backend(rank);
      if (wrap) dp_backend = wrap(place, "dp", std::move(dp_backend));
      if (wrap) tp_backend = wrap(place, "tp", std::move(tp_backend));
      Ledger ledger;
      Communicator dp("dp", place.dp, grid.dp(), *dp_backend, ledger);
      Communicator tp("tp", place.tp, grid.tp(), *tp_backend, ledger);
      Communicator world("world", rank, grid.size(), *world_backend, ledger);
      MemoryMeter meter;
      MeterScope scope(meter);
      TestRank test_rank{place, dp, tp, ledger, meter, world};
      body(test_rank);
    } catch (...) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!first) first = std::current_exception();
      }
      for (const auto& group : dp_groups) group.second->abort("another rank failed");
      for (const auto& group : worlds) group.second->abort("another rank failed");
      for (const auto& group : tp_groups) group.second->abort("another rank failed");
    }
  };

  std::vector<std::thread> threads;
  for (int rank = 0; rank < grid.size(); ++rank) threads.emplace_back(run_one, rank);
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace muonwalk::test
