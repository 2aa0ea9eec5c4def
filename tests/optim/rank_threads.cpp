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
  std::map<std::string, MemoryGroups> all;  // by name
  for (const char* name : {"dp", "tp", "pp", "world", "first and last stage"}) all[name] = groups_named(grid, name);
  std::mutex mutex;
  std::exception_ptr first;

  const auto run_one = [&](int rank) {
    const Place place = grid.place(rank);
    try {
      Ledger ledger;
      std::vector<std::unique_ptr<Backend>> backends;
      std::map<std::string, std::unique_ptr<Communicator>> communicators;
      std::map<std::string, Communicator*> by_name;
      for (const auto& [name, groups] : all) {
        const Group group = grid.group(name, rank);
        if (group.ranks.empty()) continue;
        const int number = group.number_of(rank);
        std::unique_ptr<Backend> backend = groups.at(group.ranks.front())->backend(number);
        backends.push_back(wrap ? wrap(place, name, std::move(backend)) : std::move(backend));
        communicators[name] = std::make_unique<Communicator>(name, number, group.size(), *backends.back(), ledger);
        by_name[name] = communicators[name].get();
      }
      MemoryMeter meter;
      MeterScope scope(meter);
      TestRank test_rank{place, *by_name.at("dp"), *by_name.at("tp"), ledger, meter, by_name};
      body(test_rank);
    } catch (...) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!first) first = std::current_exception();
      }
      for (const auto& [name, groups] : all)
        for (const auto& group : groups) group.second->abort("another rank failed");
    }
  };

  std::vector<std::thread> threads;
  for (int rank = 0; rank < grid.size(); ++rank) threads.emplace_back(run_one, rank);
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace muonwalk::test
