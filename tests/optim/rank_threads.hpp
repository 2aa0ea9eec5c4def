#pragma once

#include <functional>
#include <memory>

#include "src/comm/point_to_point.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::test {

/// What a test's rank has: its place, its two groups, the ledger they share, and the meter of its thread.
struct TestRank {
  Place place;
  Communicator& dp;
  Communicator& tp;
  Ledger& ledger;
  MemoryMeter& meter;
};

/// Stands between a rank and a group's transport, for tests that plant a bug there. Null: the transport as it is.
using WrapTransport = std::function<std::unique_ptr<Transport>(const Place&, GroupKind, std::unique_ptr<Transport>)>;

/// Runs `body` on every rank of the grid, a thread each, over the in-memory transport. When a rank throws, the others
/// are woken; the first exception is thrown again here once all threads have ended. `body` must not use doctest's
/// macros: ranks leave what they found in memory of their own and the test looks at it afterwards.
void run_ranks(const Grid& grid, const std::function<void(TestRank&)>& body, const WrapTransport& wrap = nullptr);

}  // namespace muonwalk::test
