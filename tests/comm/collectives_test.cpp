#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/comm/rank_runners.hpp"

using namespace muonwalk;
using namespace muonwalk::testing;

TEST_CASE(
    "collectives over memory: every kind, element type and world size equals the naive reference, bytes included") {
  for (int size = 1; size <= 8; ++size) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      RandomCalls calls;
      calls.seed = 1000 * seed + std::uint64_t(size);
      calls.calls = 120;
      calls.largest = seed % 2 ? 40 : 3000;
      CAPTURE(size);
      CAPTURE(calls.seed);
      CHECK(joined(on_memory_threads(size, [&](Communicator& c) { return make_random_calls(c, calls); })) == "");
    }
  }
}

TEST_CASE("sums over ranks: the balanced tree in rank order, which is not the sum from left to right") {
  const int size = 7;
  const Index count = 4000;
  std::vector<std::vector<float>> held(size, std::vector<float>(count));
  std::mt19937_64 random(5);
  for (auto& values : held) {
    for (float& value : values) value = std::uniform_real_distribution<float>(-1.0f, 1.0f)(random);
  }
  std::vector<float> tree(count), left_to_right(count);
  for (Index i = 0; i < count; ++i) {
    const std::size_t k = static_cast<std::size_t>(i);
    tree[k] = ((held[0][k] + held[1][k]) + (held[2][k] + held[3][k])) + ((held[4][k] + held[5][k]) + held[6][k]);
    for (const auto& values : held) left_to_right[k] += values[k];
  }
  REQUIRE(std::memcmp(tree.data(), left_to_right.data(), tree.size() * sizeof(float)) != 0);
  const auto complaints = on_memory_threads(size, [&](Communicator& c) -> std::string {
    Flat values(held[std::size_t(c.rank())].begin(), held[std::size_t(c.rank())].end());
    const Flat sums = c.all_reduce(values);
    if (std::memcmp(sums.data(), tree.data(), tree.size() * sizeof(float)) != 0) return "not the tree";
    return "";
  });
  CHECK(joined(complaints) == "");
}

TEST_CASE("flat buffers: the calls as lessons write them") {
  const auto complaints = on_memory_threads(4, [&](Communicator& c) -> std::string {
    const float r = static_cast<float>(c.rank());
    const Flat gathered = c.all_gather(Flat{r, r + 10});
    if (gathered != Flat{0, 10, 1, 11, 2, 12, 3, 13}) return "all_gather";
    const Flat piece = c.reduce_scatter(Flat{1 + r, 2 + r, 3 + r, 4 + r});
    if (piece != Flat{4 * (1 + r) + 6}) return "reduce_scatter";
    if (c.all_reduce(Flat{r}) != Flat{6}) return "all_reduce";
    if (!c.all_gather(Flat{}).empty()) return "all_gather of nothing";
    try {
      c.reduce_scatter(Flat(6));
      return "six elements for four ranks were not refused";
    } catch (const RunError& error) {
      if (std::string(error.what()).find("pad to a multiple of 4") == std::string::npos) return error.what();
    }
    return "";
  });
  CHECK(joined(complaints) == "");
}

TEST_CASE("a barrier: nobody leaves before the last one has come") {
  for (int size = 1; size <= 8; ++size) {
    std::vector<std::atomic<int>> arrivals(200);
    const auto complaints = on_memory_threads(size, [&](Communicator& c) -> std::string {
      for (auto& arrived : arrivals) {
        ++arrived;
        c.barrier();
        if (arrived != c.size()) return "left early";
      }
      return "";
    });
    CAPTURE(size);
    CHECK(joined(complaints) == "");
  }
}

namespace {

// Calls that must be refused, each on its own, before anything moves.
std::string refusals(Communicator& c) {
  float values[16] = {};
  std::byte bytes[16] = {};
  const Index huge = std::numeric_limits<Index>::max() / 2 + 1;
  const int n = c.size();
  const std::vector<Index> ones(std::size_t(n), 1);
  std::vector<Index> more = ones;
  more[std::size_t(c.rank())] = 2;
  struct Refusal {
    const char* words;
    std::function<void()> call;
  };
  const std::vector<Refusal> all = {
      {"is negative", [&] { c.all_gather(values, Index{-1}, values); }},
      {"is negative", [&] { c.send(values, Index{-3}, (c.rank() + 1) % n); }},
      {"more bytes", [&] { c.broadcast(values, huge, 0); }},
      {"more bytes", [&] { c.all_gather(bytes, huge, bytes + 1); }},
      {"peer 9 does not exist", [&] { c.send(values, Index{1}, 9); }},
      {"peer -1 does not exist", [&] { c.recv(values, Index{1}, -1); }},
      {"root 2 does not exist; ranks go from 0 to 1", [&] { c.broadcast(values, Index{1}, 2); }},
      {"the rank itself", [&] { c.send(values, Index{1}, c.rank()); }},
      {"the rank itself", [&] { c.recv(values, Index{1}, c.rank()); }},
      {"is null", [&] { c.all_reduce(static_cast<float*>(nullptr), Index{1}); }},
      {"is null", [&] { c.all_gather(values, Index{1}, static_cast<float*>(nullptr)); }},
      {"is null", [&] { c.reduce_scatter(static_cast<const float*>(nullptr), Index{1}, values); }},
      {"bytes have no sum", [&] { c.all_reduce(bytes, Index{1}); }},
      {"bytes have no sum", [&] { c.reduce_scatter(bytes, Index{1}, bytes); }},
      {"overlap", [&] { c.all_gather(values + (c.rank() == 0 ? 1 : 0), Index{2}, values); }},
      {"overlap", [&] { c.reduce_scatter(values, Index{2}, values + 1); }},
      {"overlap", [&] { c.all_to_all_v(values, ones, values + 1, ones); }},
      {"one for each of the 2 ranks",
       [&] {
         c.all_gather_v(values, {1, 1, 1}, values + 1);
       }},
      {"one for each of the 2 ranks", [&] { c.all_to_all_v(values, {1}, values + 8, ones); }},
      {"must be equal", [&] { c.all_to_all_v(values, more, values + 8, ones); }},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = "refusal " + std::to_string(i) + ": ";
    try {
      all[i].call();
      return name + "was accepted";
    } catch (const std::invalid_argument& error) {
      if (std::string(error.what()).find(all[i].words) == std::string::npos) return name + error.what();
    }
  }
  if (!c.ledger().lines().empty()) return "a refused call is in the ledger";
  // Whoever catches the error can go on.
  if (c.all_reduce(Flat{1}) != Flat{2}) return "the group is broken";
  return "";
}

}  // namespace

TEST_CASE("wrong arguments: refused with a sentence, on the rank that makes them, before anything moves") {
  CHECK(joined(on_memory_threads(2, refusals)) == "");
}

TEST_CASE("a group: rank and size must go together") {
  sim::MemoryMeeting meeting(2, patient);
  const auto transport = meeting.transport(0);
  Ledger ledger;
  CHECK_THROWS_AS(PointToPointCommunicator("g", 2, 2, *transport, ledger), std::invalid_argument);
  CHECK_THROWS_AS(PointToPointCommunicator("g", 0, 0, *transport, ledger), std::invalid_argument);
  CHECK_THROWS_AS(meeting.transport(2), std::invalid_argument);
  CHECK_THROWS_AS(sim::MemoryMeeting(0, patient), std::invalid_argument);
}
