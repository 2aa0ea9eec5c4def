#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "src/comm/communicator.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::test {

/// What a test's rank has: its place, its groups, the ledger they share, and the meter of its memory.
struct TestRank {
  Place place;
  Communicator& dp;
  Communicator& tp;
  Communicator& world;
  Ledger& ledger;
  MemoryMeter& meter;
  /// All of its groups by name, those three among them: "pp", "first and last stage" if it is in one.
  std::map<std::string, Communicator*> groups;

  /// The group of this name; throws std::out_of_range where it is in none.
  Communicator& group(const std::string& name) const { return *groups.at(name); }
};

/// Stands between a rank and a group's backend, for tests that plant a bug there. Null: the backend as it is.
using WrapBackend =
    std::function<std::unique_ptr<Backend>(const Place&, const std::string& group, std::unique_ptr<Backend>)>;

/// Runs `body` on every rank of the grid, a fiber each, over memory. When a rank throws, the others' waits end; the
/// first exception is thrown again here once all have returned. The order of their turns is another one each time: the
/// n-th run of a program draws it by the seed n.
void run_ranks(const Grid& grid, const std::function<void(TestRank&)>& body, const WrapBackend& wrap = nullptr);

}  // namespace muonwalk::test
