#include "tests/optim/rank_fibers.hpp"

#include <exception>
#include <map>
#include <vector>

#include "sim/fibers/fibers.hpp"
#include "sim/transport/memory_backend.hpp"

namespace muonwalk::test {
namespace {

using MemoryGroups = std::map<int, std::unique_ptr<sim::MemoryGroup>>;  // by the lowest rank

/// All groups of this name.
MemoryGroups groups_named(const Grid& grid, const std::string& name) {
  MemoryGroups all;
  for (const Group& group : grid.groups(name))
    all[group.ranks.front()] = std::make_unique<sim::MemoryGroup>(group.size(), name);
  return all;
}

}  // namespace

void run_ranks(const Grid& grid, const std::function<void(TestRank&)>& body, const WrapBackend& wrap) {
  std::map<std::string, MemoryGroups> all;  // by name
  for (const char* name : {"dp", "tp", "pp", "world", "first and last stage"}) all[name] = groups_named(grid, name);
  for (const int ep : {2, 4, 8})
    for (const std::string& name : {"ep " + std::to_string(ep), "dp / ep " + std::to_string(ep)})
      if (grid.dp() % ep == 0) all[name] = groups_named(grid, name);
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
      TestRank test_rank{place, *by_name.at("dp"), *by_name.at("tp"), *by_name.at("world"), ledger, meter, by_name};
      body(test_rank);
    } catch (...) {
      if (!first) first = std::current_exception();
      sim::fiber::end_waits("another rank failed");
    }
  };

  static std::uint64_t runs = 0;
  sim::Turns turns;
  turns.seed = ++runs;
  sim::run_fibers(grid.size(), run_one, turns);
  if (first) std::rethrow_exception(first);
}

}  // namespace muonwalk::test
