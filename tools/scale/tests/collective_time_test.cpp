// Collectives by formula: against values worked out by hand, and against what must hold in any cluster.
#include "tools/scale/collective_time.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <tuple>

#include "tests/near.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

using Kind = CollectiveKind;

constexpr Kind kKinds[] = {Kind::reduce_scatter, Kind::all_gather, Kind::all_reduce,
                           Kind::all_to_all,     Kind::send,       Kind::recv};

// Nodes of 8 whose links carry 100 bytes per second, with a latency of 1 s; between nodes 10, and 5 s.
Cluster two_levels() {
  Cluster cluster;
  cluster.name = "two levels";
  cluster.levels = {{"node", 8, 100, 1, {}, {}, "made up"}, {"network", 0, 10, 5, {}, {}, "made up"}};
  return cluster;
}

CollectiveSeconds in(const Cluster& cluster, Kind kind, double bytes, int ranks, int stride) {
  return collective_seconds(kind, bytes, cluster, group_spread(cluster, ranks, stride));
}

}  // namespace

TEST_CASE("collective_seconds: on one level, the formulas by hand, for any number of ranks") {
  const Cluster cluster = two_levels();
  // Inside of a node, or a rank on each node: then eight groups leave a node at once, each over an eighth of its links.
  for (const auto& [ranks, stride, alpha, rate] :
       {std::tuple{2, 1, 1.0, 100.0}, {8, 1, 1.0, 100.0}, {2, 4, 1.0, 100.0}, {16, 8, 5.0, 10.0}, {64, 8, 5.0, 10.0}}) {
    CAPTURE(ranks);
    CAPTURE(stride);
    const double others = ranks - 1, seconds = 1234 * others / ranks / rate;
    for (const Kind kind : {Kind::reduce_scatter, Kind::all_gather, Kind::all_to_all}) {
      CHECK(in(cluster, kind, 1234, ranks, stride).latency == near(others * alpha));
      CHECK(in(cluster, kind, 1234, ranks, stride).transfer == near(seconds));
    }
    CHECK(in(cluster, Kind::all_reduce, 1234, ranks, stride).total() == near(2 * (others * alpha + seconds)));
    CHECK(in(cluster, Kind::recv, 1234, ranks, stride).total() == near(alpha + 1234 / rate));
  }
}

TEST_CASE("collective_seconds: over two levels by hand, 32 ranks on four nodes, 800 bytes") {
  const Cluster cluster = two_levels();
  // Inside of a node 700 of 800 bytes leave a rank at 100 B/s; of the 100 that are left, 75 go on at 10 B/s.
  const CollectiveSeconds half = in(cluster, Kind::reduce_scatter, 800, 32, 1);
  CHECK(half.latency == near(7 * 1 + 3 * 5));
  CHECK(half.transfer == near(700.0 / 100 + 75.0 / 10));
  CHECK(in(cluster, Kind::all_gather, 800, 32, 1).total() == near(half.total()));
  CHECK(in(cluster, Kind::all_reduce, 800, 32, 1).total() == near(2 * half.total()));
  // From each to each, 25 bytes: to 7 neighbours and to 24 others.
  CHECK(in(cluster, Kind::all_to_all, 800, 32, 1).transfer == near(175.0 / 100 + 600.0 / 10));
  CHECK(in(cluster, Kind::all_to_all, 800, 32, 1).latency == near(7 * 1 + 24 * 5));
  CHECK(in(cluster, Kind::send, 100, 2, 8).total() == near(5 + 10));
  CHECK(in(cluster, Kind::recv, 100, 32, 1).total() == near(5 + 10));
}

TEST_CASE("a measured bus bandwidth is taken, shared, and marked outside of its range") {
  Cluster cluster = two_levels();
  cluster.levels[1].all_reduce = {{{2, 40}, {8, 20}}, "somebody"};
  cluster.levels[1].all_gather = {{{2, 30}}, "somebody"};
  // nccl-tests: bus bandwidth is the buffer's bytes over the time, times 2 (p − 1)/p for an all-reduce.
  CHECK(in(cluster, Kind::all_reduce, 1600, 16, 1).transfer == near(1600 * 2 * 15.0 / 16 / 40));
  CHECK(in(cluster, Kind::all_reduce, 1600, 64, 1).transfer == near(1600 * 2 * 63.0 / 64 / 20));
  CHECK(in(cluster, Kind::all_gather, 1600, 16, 1).transfer == near(1500.0 / 30));
  CHECK_FALSE(in(cluster, Kind::all_reduce, 1600, 64, 1).outside);
  const CollectiveSeconds outside = in(cluster, Kind::all_reduce, 1600, 128, 1);
  REQUIRE(outside.outside);
  CHECK(outside.outside->at == 16);
  CHECK(outside.outside->nearest == 8);
  CHECK(in(cluster, Kind::all_gather, 1600, 64, 1).outside);
  // Eight groups share it.
  CHECK(in(cluster, Kind::all_reduce, 1600, 2, 8).transfer == near(1600.0 / (40.0 / 8)));
  // An all-to-all was not measured, and inside of a node its curve is not asked.
  CHECK(in(cluster, Kind::all_to_all, 800, 16, 1).transfer == near(350.0 / 100 + 400.0 / 10));
  CHECK_FALSE(in(cluster, Kind::all_reduce, 1600, 8, 1).outside);
  // A curve that is inside of a measured level does not count; where the level outside was not measured, it does.
  cluster.levels[0].all_reduce = {{{8, 80}}, "somebody"};
  CHECK_FALSE(in(cluster, Kind::all_reduce, 1600, 4, 4).outside);
  cluster.levels[1].all_reduce = {};
  CHECK(in(cluster, Kind::all_reduce, 1600, 4, 4).outside);
}

TEST_CASE("in any cluster more bytes or ranks are never faster, and one rank takes no time") {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = cluster_of(name);
    const int node = cluster.node();
    for (const Kind kind : kKinds)
      for (const int stride : {1, node}) {
        CAPTURE(name);
        CAPTURE(collective_name(kind));
        double before = 0;
        for (int ranks = 1; ranks <= 4096; ranks *= ranks < node ? node / ranks : 2) {
          const double time = in(cluster, kind, 1e8, ranks, stride).total();
          CHECK((time == 0) == (ranks == 1));
          CHECK(time >= before * (1 - 1e-12));
          CHECK(time <= in(cluster, kind, 2e8, ranks, stride).total());
          before = time;
        }
      }
  }
}

TEST_CASE("collectives that no step has, and bytes that can't be, are refused, also for one rank") {
  const Cluster cluster = two_levels();
  for (const int ranks : {1, 8})
    for (const Kind kind : {Kind::wait, Kind::barrier, Kind::broadcast})
      CHECK_THROWS_AS(in(cluster, kind, 8, ranks, 1), std::invalid_argument);
  for (const double bytes : {-1.0, std::nan(""), HUGE_VAL, -HUGE_VAL})
    CHECK_THROWS_AS(in(cluster, Kind::all_gather, bytes, 8, 1), std::invalid_argument);
}
