// Collectives by formula: against values worked out by hand, against what must hold for any size, and, of Muonwalk's
// own way, against the bytes that its ranks send.

#include "sim/cost_model/collective_time.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using Kind = CollectiveKind;
using Way = CollectiveAlgorithm;

namespace {

constexpr Way kWays[] = {Way::ring, Way::tree, Way::halving, Way::pairwise, Way::two_level, Way::direct};
constexpr Kind kKinds[] = {Kind::barrier,        Kind::send,       Kind::recv,       Kind::all_gather,
                           Kind::reduce_scatter, Kind::all_reduce, Kind::all_to_all, Kind::broadcast};

// What an algorithm has, as the header's table says.
bool has(Way way, Kind kind) {
  if (kind == Kind::barrier || kind == Kind::send || kind == Kind::recv) return true;
  if (way == Way::tree) return kind == Kind::all_reduce || kind == Kind::broadcast;
  if (kind == Kind::all_to_all) return way == Way::pairwise || way == Way::two_level || way == Way::direct;
  if (kind == Kind::broadcast) return way == Way::ring || way == Way::two_level || way == Way::direct;
  return true;
}

// Two levels of 8 and of all, with links of 100 and 10 bytes per second.
Cluster two_levels() {
  Cluster cluster;
  cluster.name = "two levels";
  cluster.levels.resize(2);
  cluster.levels[0].name = "inside";
  cluster.levels[0].accelerators = 8;
  cluster.levels[0].bytes_per_second = 100;
  cluster.levels[0].latency_seconds = 1;
  cluster.levels[1].name = "between";
  cluster.levels[1].bytes_per_second = 10;
  cluster.levels[1].latency_seconds = 5;
  return cluster;
}

CollectiveSeconds in(const Cluster& cluster, Way way, Kind kind, double bytes, int ranks, int stride) {
  return collective_seconds(kind, way, bytes, cluster, group_spread(cluster, ranks, stride));
}

struct ByHand {
  Way way;
  Kind kind;
  int ranks;
  double messages;  // α
  double moved;     // β, in buffers
};

}  // namespace

TEST_CASE("over one kind of link every algorithm takes what its formula says") {
  const LinkCost link{3, 0.5};
  const std::vector<ByHand> cases = {{Way::ring, Kind::reduce_scatter, 4, 3, 0.75},
                                     {Way::ring, Kind::all_gather, 5, 4, 0.8},
                                     {Way::ring, Kind::all_reduce, 4, 6, 1.5},
                                     {Way::ring, Kind::broadcast, 4, 3, 1},
                                     {Way::tree, Kind::all_reduce, 8, 6, 2},
                                     {Way::tree, Kind::all_reduce, 5, 6, 2},
                                     {Way::tree, Kind::broadcast, 8, 3, 1},
                                     {Way::halving, Kind::reduce_scatter, 8, 3, 0.875},
                                     {Way::halving, Kind::all_gather, 2, 1, 0.5},
                                     {Way::halving, Kind::all_reduce, 8, 6, 1.75},
                                     {Way::pairwise, Kind::all_to_all, 4, 3, 0.75},
                                     {Way::pairwise, Kind::reduce_scatter, 10, 9, 0.9},
                                     {Way::direct, Kind::all_reduce, 4, 6, 1.5},
                                     {Way::direct, Kind::all_to_all, 5, 4, 0.8},
                                     {Way::direct, Kind::broadcast, 5, 4, 4},
                                     {Way::direct, Kind::barrier, 8, 3, 0},
                                     {Way::ring, Kind::barrier, 9, 4, 0},
                                     {Way::halving, Kind::send, 2, 1, 1},
                                     {Way::direct, Kind::recv, 2, 1, 1}};
  for (const ByHand& each : cases) {
    CAPTURE(algorithm_name(each.way));
    CAPTURE(collective_name(each.kind));
    CAPTURE(each.ranks);
    const CollectiveSeconds time = collective_seconds(each.kind, each.way, 1000, each.ranks, link);
    CHECK(time.latency == doctest::Approx(3 * each.messages));
    CHECK(time.transfer == doctest::Approx(500 * each.moved));
    CHECK(time.total() == doctest::Approx(3 * each.messages + 500 * each.moved));
    CHECK_FALSE(time.extrapolated);
  }
}

TEST_CASE("any algorithm, any size: more bytes or ranks are never faster, and one rank costs nothing") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const LinkCost link{std::ldexp(1.0, -static_cast<int>(random() % 20)),
                        std::ldexp(1.0, -static_cast<int>(random() % 30))};
    const double bytes = static_cast<double>(random() % 1000000);
    const int ranks = 2 << random() % 10;
    for (const Way way : kWays)
      for (const Kind kind : kKinds) {
        if (!has(way, kind) || way == Way::two_level) continue;
        CAPTURE(algorithm_name(way));
        CAPTURE(collective_name(kind));
        const CollectiveSeconds time = collective_seconds(kind, way, bytes, ranks, link);
        CHECK(time.total() <= collective_seconds(kind, way, 2 * bytes + 1, ranks, link).total());
        CHECK(time.total() <= collective_seconds(kind, way, bytes, 2 * ranks, link).total());
        CHECK(collective_seconds(kind, way, bytes, 1, link).total() == 0);
      }
    const double whole = collective_seconds(Kind::all_reduce, Way::ring, bytes, ranks, link).total();
    CHECK(whole == doctest::Approx(collective_seconds(Kind::reduce_scatter, Way::ring, bytes, ranks, link).total() +
                                   collective_seconds(Kind::all_gather, Way::ring, bytes, ranks, link).total()));
    // No rank can end an all-reduce before it has sent and taken 2 (p − 1)/p of the buffer, and a ring sends no more.
    const double bound = 2 * bytes * (ranks - 1) / ranks * link.seconds_per_byte;
    for (const Way way : {Way::ring, Way::tree, Way::halving, Way::pairwise, Way::direct})
      CHECK(collective_seconds(Kind::all_reduce, way, bytes, ranks, link).transfer >= bound * (1 - 1e-12));
    CHECK(collective_seconds(Kind::all_reduce, Way::ring, bytes, ranks, link).transfer == doctest::Approx(bound));
  }
}

TEST_CASE("direct sends the bytes and messages of Muonwalk's own ranks") {
  const LinkCost counts_bytes{0, 1}, counts_messages{1, 0};
  for (int ranks = 1; ranks <= 12; ++ranks)
    for (const Index piece : {1, 7, 1000}) {
      CAPTURE(ranks);
      CAPTURE(piece);
      const Index elements = piece * ranks;
      const double bytes = 4.0 * static_cast<double>(elements);
      const auto equals = [&](Kind kind, double of, const Traffic& traffic) {
        CAPTURE(collective_name(kind));
        CHECK(collective_seconds(kind, Way::direct, of, ranks, counts_bytes).total() ==
              doctest::Approx(static_cast<double>(traffic.bytes_sent)));
        CHECK(collective_seconds(kind, Way::direct, of, ranks, counts_messages).total() ==
              static_cast<double>(traffic.messages_sent));
      };
      equals(Kind::all_gather, bytes, all_gather_traffic(ranks, piece, ElementType::float32));
      equals(Kind::reduce_scatter, bytes, reduce_scatter_traffic(ranks, piece, ElementType::float32));
      equals(Kind::all_reduce, bytes, all_reduce_traffic(0, ranks, elements, ElementType::float32));
      equals(Kind::broadcast, bytes, broadcast_traffic(0, 0, ranks, elements, ElementType::float32));
      const std::vector<Index> pieces(static_cast<std::size_t>(ranks), piece);
      equals(Kind::all_to_all, bytes, all_to_all_v_traffic(0, pieces, pieces, ElementType::float32));
      equals(Kind::barrier, 0, barrier_traffic(ranks));
      if (ranks == 2) equals(Kind::send, bytes, send_traffic(elements, ElementType::float32));
    }
}

TEST_CASE("a group in a cluster: latencies level by level, bytes at the pace of the slowest") {
  const Cluster cluster = two_levels();
  // 16 ranks in two nodes: 14 hops inside, 1 between. Eight links of 10 leave a node, one of 100 an accelerator.
  const CollectiveSeconds whole = in(cluster, Way::ring, Kind::all_gather, 1600, 16, 1);
  CHECK(whole.latency == doctest::Approx(14 * 1 + 1 * 5));
  CHECK(whole.transfer == doctest::Approx(1500.0 / 80));
  // One rank per node: its own link alone.
  const CollectiveSeconds strided = in(cluster, Way::ring, Kind::all_gather, 1600, 16, 8);
  CHECK(strided.latency == doctest::Approx(15 * 5));
  CHECK(strided.transfer == doctest::Approx(1500.0 / 10));
  // Inside of a node nothing leaves it.
  const CollectiveSeconds inside = in(cluster, Way::ring, Kind::all_reduce, 800, 8, 1);
  CHECK(inside.latency == doctest::Approx(14));
  CHECK(inside.transfer == doctest::Approx(14));
  // A message between two ranks of the group takes the outermost link that the group crosses.
  for (const Kind message : {Kind::send, Kind::recv}) {
    CHECK(in(cluster, Way::direct, message, 800, 32, 1).latency == doctest::Approx(5));
    CHECK(in(cluster, Way::direct, message, 800, 32, 1).transfer == doctest::Approx(800.0 / 10));
    CHECK(in(cluster, Way::direct, message, 800, 8, 1).latency == doctest::Approx(1));
    CHECK(in(cluster, Way::direct, message, 800, 8, 1).transfer == doctest::Approx(800.0 / 100));
  }
  // A tree is three deep in a node, and two between four of them.
  CHECK(in(cluster, Way::tree, Kind::all_reduce, 800, 32, 1).latency == doctest::Approx(2 * (3 * 1 + 2 * 5)));
  CHECK(in(cluster, Way::tree, Kind::all_reduce, 800, 32, 1).transfer == doctest::Approx(2 * 800.0 / 80));
  // Two levels: 800 bytes over 8 ranks inside, then 100 over 4 nodes.
  const CollectiveSeconds levels = in(cluster, Way::two_level, Kind::reduce_scatter, 800, 32, 1);
  CHECK(levels.latency == doctest::Approx(7 * 1 + 3 * 5));
  CHECK(levels.transfer == doctest::Approx(700.0 / 100 + 75.0 / 10));
  CHECK(in(cluster, Way::two_level, Kind::all_reduce, 800, 32, 1).total() == doctest::Approx(2 * levels.total()));
  // Halving meets the far ranks first: 600 of 800 bytes over a link of 10, then 175 of 200 inside.
  CHECK(in(cluster, Way::halving, Kind::reduce_scatter, 800, 32, 1).transfer ==
        doctest::Approx(600.0 / 10 + 175.0 / 100));
  // From each to each, 25 bytes: to 7 neighbours and to 24 others, one level after the other, or both at once.
  CHECK(in(cluster, Way::pairwise, Kind::all_to_all, 800, 32, 1).transfer == doctest::Approx(175.0 / 100 + 600.0 / 10));
  CHECK(in(cluster, Way::direct, Kind::all_to_all, 800, 32, 1).transfer == doctest::Approx(600.0 / 10));
  CHECK(in(cluster, Way::direct, Kind::all_to_all, 800, 32, 1).latency == doctest::Approx(7 * 1 + 24 * 5));
  CHECK(in(cluster, Way::two_level, Kind::all_to_all, 800, 32, 1).latency == doctest::Approx(7 * 1 + 3 * 5));
  CHECK(in(cluster, Way::direct, Kind::send, 100, 2, 8).total() == doctest::Approx(5 + 10));
  CHECK(in(cluster, Way::direct, Kind::barrier, 0, 32, 1).total() == doctest::Approx(3 * 1 + 2 * 5));
}

TEST_CASE("on one level two-level is a ring, and an all-to-all pairwise") {
  const Cluster cluster = two_levels();
  for (const auto& [ranks, stride] : {std::pair{8, 1}, {4, 1}, {2, 4}, {16, 8}, {64, 16}, {1, 1}})
    for (const Kind kind :
         {Kind::reduce_scatter, Kind::all_gather, Kind::all_reduce, Kind::broadcast, Kind::all_to_all}) {
      const Way other = kind == Kind::all_to_all ? Way::pairwise : Way::ring;
      const CollectiveSeconds levels = in(cluster, Way::two_level, kind, 1234, ranks, stride);
      const CollectiveSeconds plain = in(cluster, other, kind, 1234, ranks, stride);
      CHECK(levels.latency == doctest::Approx(plain.latency));
      CHECK(levels.transfer == doctest::Approx(plain.transfer));
    }
}

TEST_CASE("a measured bus bandwidth is taken, shared, and marked outside of its range") {
  Cluster cluster = two_levels();
  cluster.levels[1].all_reduce = MeasuredCurve("bus bandwidth", {{2, 40}, {8, 20}}, "somebody");
  cluster.levels[1].all_gather = MeasuredCurve("bus bandwidth", {{2, 30}}, "somebody");
  // nccl-tests: bus bandwidth is the buffer's bytes over the time, times 2 (p − 1)/p for an all-reduce.
  for (const Way way : {Way::ring, Way::two_level}) {
    CHECK(in(cluster, way, Kind::all_reduce, 1600, 16, 1).transfer == doctest::Approx(1600 * 2 * 15.0 / 16 / 40));
    CHECK(in(cluster, way, Kind::all_reduce, 1600, 64, 1).transfer == doctest::Approx(1600 * 2 * 63.0 / 64 / 20));
    CHECK(in(cluster, way, Kind::all_gather, 1600, 16, 1).transfer == doctest::Approx(1500.0 / 30));
    CHECK_FALSE(in(cluster, way, Kind::all_reduce, 1600, 64, 1).extrapolated);
    CHECK(in(cluster, way, Kind::all_reduce, 1600, 128, 1).extrapolated);
    CHECK(in(cluster, way, Kind::all_gather, 1600, 64, 1).extrapolated);
    // Eight groups share it.
    CHECK(in(cluster, way, Kind::all_reduce, 1600, 2, 8).transfer == doctest::Approx(1600.0 / (40.0 / 8)));
    CHECK(in(cluster, way, Kind::all_reduce, 1600, 8, 4).transfer ==
          doctest::Approx(1600 * 2 * 7.0 / 8 / (28.284 / 4)).epsilon(1e-3));
  }
  CHECK(in(cluster, Way::two_level, Kind::all_to_all, 800, 16, 1).transfer == doctest::Approx(7 + 40));
  // Inside of a node its curve is not asked, and a curve that is inside of a measured level does not count.
  CHECK_FALSE(in(cluster, Way::ring, Kind::all_reduce, 1600, 8, 1).extrapolated);
  cluster.levels[0].all_reduce = MeasuredCurve("bus bandwidth", {{8, 80}}, "somebody");
  CHECK(in(cluster, Way::two_level, Kind::all_reduce, 1600, 4, 4).extrapolated == false);
  CHECK(in(cluster, Way::ring, Kind::all_reduce, 1600, 4, 4).extrapolated);
}

TEST_CASE("in a cluster, too, more bytes or ranks are never faster") {
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = cluster_of(name);
    const int node = cluster.node();
    for (const Way way : kWays)
      for (const Kind kind : kKinds) {
        if (!has(way, kind) || (way == Way::halving && (node & (node - 1)) != 0)) continue;
        CAPTURE(name);
        CAPTURE(algorithm_name(way));
        CAPTURE(collective_name(kind));
        for (const int stride : {1, node}) {
          double before = 0;
          for (int ranks = 1; ranks <= 4096; ranks *= ranks < node ? node / ranks : 2) {
            const double time = in(cluster, way, kind, 1e8, ranks, stride).total();
            CHECK(time >= before * (1 - 1e-12));
            CHECK(time <= in(cluster, way, kind, 2e8, ranks, stride).total());
            before = time;
          }
        }
      }
  }
}

TEST_CASE("what an algorithm does not have, and what makes no sense, is refused") {
  const LinkCost link{1, 1};
  const Cluster cluster = two_levels();
  for (const Way way : kWays)
    for (const Kind kind : kKinds) {
      CAPTURE(algorithm_name(way));
      CAPTURE(collective_name(kind));
      for (const int ranks : {1, 8}) {
        if (has(way, kind))
          CHECK(in(cluster, way, kind, 8, ranks, 1).total() >= 0);
        else
          CHECK_THROWS_AS(in(cluster, way, kind, 8, ranks, 1), std::invalid_argument);
        if (!has(way, kind) || way == Way::two_level)
          CHECK_THROWS_AS(collective_seconds(kind, way, 8, ranks, link), std::invalid_argument);
      }
      CHECK_THROWS_AS(collective_seconds(kind, way, -1, 2, link), std::invalid_argument);
      CHECK_THROWS_AS(collective_seconds(kind, way, std::nan(""), 2, link), std::invalid_argument);
      CHECK_THROWS_AS(collective_seconds(kind, way, INFINITY, 2, link), std::invalid_argument);
      CHECK_THROWS_AS(collective_seconds(kind, way, 1, 0, link), std::invalid_argument);
    }
  CHECK_THROWS_AS(collective_seconds(Kind::wait, Way::direct, 1, 2, link), std::invalid_argument);
  CHECK_THROWS_AS(collective_seconds(Kind::all_reduce, Way::halving, 1, 6, link), std::invalid_argument);
  for (const Way way : kWays) CHECK(parse_algorithm(algorithm_name(way)) == way);
  CHECK_THROWS_AS(parse_algorithm("butterfly"), UsageError);
}
