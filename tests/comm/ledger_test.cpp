#include "src/comm/ledger.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <random>
#include <stdexcept>
#include <tuple>

#include "src/comm/predicted_traffic.hpp"

using namespace muonwalk;

namespace {

Traffic traffic(std::int64_t sent, std::int64_t received, std::int64_t out, std::int64_t in) {
  Traffic t;
  t.bytes_sent = sent;
  t.bytes_received = received;
  t.messages_sent = out;
  t.messages_received = in;
  return t;
}

}  // namespace

TEST_CASE("ledger: traffic belongs to the call that was begun last, and lines keep the order of first use") {
  Ledger ledger;
  const std::size_t gather = ledger.begin_call("dp 0", CollectiveKind::all_gather, ElementType::float32);
  ledger.count(gather, {true, 1, 12});
  const std::size_t broadcast = ledger.begin_call("tp 1", CollectiveKind::broadcast, ElementType::bytes);
  CHECK(ledger.begin_call("dp 0", CollectiveKind::all_gather, ElementType::float32) == gather);
  ledger.count(gather, {true, 1, 4});
  ledger.count(broadcast, {false, 1, 5});  // also when another call has begun since
  ledger.count(gather, {false, 1, 0});
  ledger.begin_call("dp 0", CollectiveKind::all_gather, ElementType::bfloat16);

  REQUIRE(ledger.lines().size() == 3);
  CHECK(ledger.lines()[0].group == "dp 0");
  CHECK(ledger.lines()[0].calls == 2);
  CHECK(ledger.lines()[0].traffic == traffic(16, 0, 2, 1));
  CHECK(ledger.lines()[1].traffic == traffic(0, 5, 0, 1));
  CHECK(ledger.lines()[2].calls == 1);
  CHECK(ledger.lines()[2].traffic == Traffic());
  CHECK(ledger.total() == traffic(16, 5, 2, 2));
  CHECK(ledger.total("dp 0") == traffic(16, 0, 2, 1));
  CHECK(ledger.total("pp 0") == Traffic());
  ledger = Ledger();  // a new one knows none of those lines
  CHECK_THROWS_AS(ledger.count(gather, {true, 1, 1}), std::logic_error);
  CHECK_THROWS_AS(ledger.count(broadcast, {false, 1, 1}), std::logic_error);
}

TEST_CASE("first_difference: equal ledgers in any order of lines have none, and every single number is compared") {
  Ledger predicted;
  predicted.add("dp 0", CollectiveKind::all_gather, ElementType::float32, 2, traffic(8, 16, 1, 2));
  predicted.add("tp 0", CollectiveKind::barrier, ElementType::bytes, 1, traffic(0, 0, 1, 1));
  Ledger counted;
  counted.add("tp 0", CollectiveKind::barrier, ElementType::bytes, 1, traffic(0, 0, 1, 1));
  counted.add("dp 0", CollectiveKind::all_gather, ElementType::float32, 2, traffic(8, 16, 1, 2));
  CHECK(first_difference(predicted, counted) == "");

  for (int which = 0; which < 5; ++which) {
    Ledger changed = counted;
    changed.add("dp 0", CollectiveKind::all_gather, ElementType::float32, which == 4 ? 1 : 0,
                traffic(which == 0, which == 1, which == 2, which == 3));
    CAPTURE(which);
    const char* names[] = {"bytes sent: 8", "bytes received: 16", "messages sent: 1", "messages received: 2",
                           "calls: 2"};
    const std::string name = names[which], number = name.substr(name.find(": ") + 2);
    const std::string begin = "all_gather of float32 in group dp 0, " + name.substr(0, name.find(": ") + 2),
                      one_more = std::to_string(std::stoi(number) + 1);
    CHECK(first_difference(predicted, changed) == begin + number + " predicted, " + one_more + " counted");
    CHECK(first_difference(changed, predicted) == begin + one_more + " predicted, " + number + " counted");
  }
  Ledger more = counted;
  more.add("pp 0", CollectiveKind::send, ElementType::bytes, 1, traffic(3, 0, 1, 0));
  CHECK(first_difference(predicted, more) == "send of bytes in group pp 0, calls: 0 predicted, 1 counted");
  CHECK(first_difference(more, predicted) == "send of bytes in group pp 0, calls: 1 predicted, 0 counted");
  // Lines are told apart by their group, kind and type alike.
  for (const auto& [group, kind, type] : {std::tuple("dp 1", CollectiveKind::all_gather, ElementType::float32),
                                          {"dp 0", CollectiveKind::all_to_all, ElementType::float32},
                                          {"dp 0", CollectiveKind::all_gather, ElementType::bfloat16}}) {
    Ledger other;
    other.add(group, kind, type, 2, traffic(8, 16, 1, 2));
    other.add("tp 0", CollectiveKind::barrier, ElementType::bytes, 1, traffic(0, 0, 1, 1));
    CHECK(first_difference(predicted, other) == "all_gather of float32 in group dp 0, calls: 2 predicted, 0 counted");
  }
}

TEST_CASE("predicted traffic: the formulas at a few sizes, worked out by hand") {
  CHECK(barrier_traffic(1) == Traffic());
  CHECK(barrier_traffic(2) == traffic(0, 0, 1, 1));
  CHECK(barrier_traffic(5) == traffic(0, 0, 3, 3));
  CHECK(barrier_traffic(8) == traffic(0, 0, 3, 3));
  CHECK(all_gather_traffic(4, 10, ElementType::float32) == traffic(120, 120, 3, 3));
  CHECK(all_gather_traffic(1, 10, ElementType::float32) == Traffic());
  CHECK(all_gather_v_traffic(1, {5, 2, 0}, ElementType::bfloat16) == traffic(8, 10, 2, 2));
  CHECK(reduce_scatter_traffic(2, 7, ElementType::bfloat16) == traffic(14, 14, 1, 1));
  // 10 elements in pieces of 3, 3 and 4: rank 2 sends 6 and receives 2 · 4, then sends 2 · 4 and receives 6.
  CHECK(all_reduce_traffic(2, 3, 10, ElementType::float32) == traffic(56, 56, 4, 4));
  CHECK(all_to_all_v_traffic(0, {9, 1, 2}, {9, 0, 4}, ElementType::bytes) == traffic(3, 4, 2, 2));
  CHECK(broadcast_traffic(1, 1, 4, 6, ElementType::float32) == traffic(72, 0, 3, 0));
  CHECK(broadcast_traffic(0, 1, 4, 6, ElementType::float32) == traffic(0, 24, 0, 1));
  CHECK(broadcast_traffic(0, 0, 1, 6, ElementType::float32) == Traffic());
  CHECK(reduce_scatter_v_traffic(1, {5, 2, 0}, ElementType::bfloat16) == traffic(10, 8, 2, 2));
  CHECK(all_to_all_v_traffic(2, {9, 1, 2}, {8, 0, 2}, ElementType::float32) == traffic(40, 32, 2, 2));
  CHECK(send_traffic(0, ElementType::float32) == traffic(0, 0, 1, 0));
  CHECK(recv_traffic(3, ElementType::bfloat16) == traffic(0, 6, 0, 1));
}

TEST_CASE("predicted traffic: what all ranks send together is what all ranks receive together, for random sizes") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const int size = 1 + static_cast<int>(random() % 9);
    const Index elements = static_cast<Index>(random() % 1000);
    const int root = static_cast<int>(random() % std::uint64_t(size));
    std::vector<Index> counts;
    for (int r = 0; r < size; ++r) counts.push_back(static_cast<Index>(random() % 20));
    Traffic sum;
    Index covered = 0;
    for (int r = 0; r < size; ++r) {
      sum += all_gather_v_traffic(r, counts, ElementType::float32);
      sum += all_reduce_traffic(r, size, elements, ElementType::bfloat16);
      sum += broadcast_traffic(r, root, size, elements, ElementType::bytes);
      const auto piece = all_reduce_piece(r, size, elements);
      CHECK(piece.first == covered);
      CHECK(piece.first == r * elements / size);
      covered = piece.second;
    }
    CHECK(covered == elements);
    CHECK(sum.bytes_sent == sum.bytes_received);
    CHECK(sum.messages_sent == sum.messages_received);
  }
}

TEST_CASE("predicted traffic: a rank outside of its group is refused") {
  const std::string begin = "traffic was to be predicted for rank ", end = ", but ranks go from 0 to size − 1";
  const auto sentence = [&](const std::string& rank_of_size) { return begin + rank_of_size + end; };
  CHECK_THROWS_WITH_AS(barrier_traffic(0), sentence("0 of 0").c_str(), std::invalid_argument);
  CHECK_THROWS_WITH_AS(all_gather_traffic(0, 1, ElementType::bytes), sentence("0 of 0").c_str(), std::invalid_argument);
  CHECK_THROWS_WITH_AS(all_gather_v_traffic(2, {1, 1}, ElementType::bytes), sentence("2 of 2").c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(all_gather_v_traffic(-1, {1, 1}, ElementType::bytes), sentence("-1 of 2").c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(broadcast_traffic(0, 3, 3, 1, ElementType::bytes), sentence("3 of 3").c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(broadcast_traffic(4, 0, 3, 1, ElementType::bytes), sentence("4 of 3").c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(all_to_all_v_traffic(2, {1, 1}, {1, 1}, ElementType::bytes), sentence("2 of 2").c_str(),
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(all_to_all_v_traffic(0, {1, 1}, {1}, ElementType::bytes),
                       "an all_to_all_v needs as many counts to receive as to send, but there are 1 and 2",
                       std::invalid_argument);
  CHECK_THROWS_AS(all_reduce_piece(-1, 2, 4), std::invalid_argument);
}

TEST_CASE("ledger: a message of a line that was never begun is refused, also behind the last one") {
  Ledger ledger;
  const std::size_t only = ledger.begin_call("dp", CollectiveKind::send, ElementType::float32);
  for (const std::size_t none : {only + 1, only + 2}) {
    CHECK_THROWS_WITH_AS(ledger.count(none, {true, 1, 1}), "the ledger was told of a message of no call that has begun",
                         std::logic_error);
    CHECK_THROWS_WITH_AS(ledger.count(none, {false, 1, 1}),
                         "the ledger was told of a message of no call that has begun", std::logic_error);
  }
  CHECK(ledger.total() == Traffic());
}

TEST_CASE("ledger: lines of another are added in their order, and none of them when it is added no times") {
  Ledger one, all;
  one.add("tp", CollectiveKind::barrier, ElementType::bytes, 1, traffic(1, 2, 3, 4));
  one.add("dp", CollectiveKind::send, ElementType::float32, 2, traffic(5, 6, 7, 8));
  all.add(one, 0);
  CHECK(all.lines().empty());
  all.add(one, 1);
  REQUIRE(all.lines().size() == 2);
  CHECK(all.lines()[0].group == "tp");
  CHECK(all.lines()[1].group == "dp");
  CHECK(all.lines()[1].type == ElementType::float32);
  CHECK(all.lines()[1].kind == CollectiveKind::send);
  CHECK(all.lines()[1].calls == 2);
  CHECK(all.total("dp") == traffic(5, 6, 7, 8));
}
