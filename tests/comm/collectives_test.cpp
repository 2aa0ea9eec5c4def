#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <stdexcept>

#include "src/errors.hpp"
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
      CHECK(joined(on_fibers(size, [&](Communicator& c) { return make_random_calls(c, calls); })) == "");
    }
  }
}

TEST_CASE("flat buffers: the calls as lessons write them") {
  const auto complaints = on_fibers(4, [&](Communicator& c) -> std::string {
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
      const std::string expected = "rank " + std::to_string(c.rank()) + " of group " + c.group() +
                                   " asked for reduce_scatter of 6 elements, but 4 ranks can't get equal pieces of "
                                   "them; pad to a multiple of 4";
      if (error.what() != expected) return error.what();
    }
    return "";
  });
  CHECK(joined(complaints) == "");
}

TEST_CASE("a barrier: nobody leaves before the last one has come") {
  for (int size = 1; size <= 8; ++size) {
    std::vector<std::atomic<int>> arrivals(200);
    const auto complaints = on_fibers(size, [&](Communicator& c) -> std::string {
      for (auto& arrived : arrivals) {
        ++arrived;
        c.barrier();
        if (arrived % c.size() != 0) return "left early";  // also when they come for the second time
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
    std::string words;
    std::function<void()> call;
  };
  const std::string none = " does not exist; ranks go from 0 to 1",
                    apart = "input and output overlap; they must be apart",
                    in_place = apart + ", or the smaller one at its own place in the larger",
                    too_many = " elements are more bytes than a 64-bit number can count",
                    counts = "; it takes one for each of the 2 ranks",
                    itself = "the peer is the rank itself; copy the values instead",
                    no_sum = "bytes have no sum; use float or bfloat16 elements";
  const std::vector<Refusal> all = {
      {"all_gather of float32, but the count -1 is negative; counts start at 0",
       [&] { c.all_gather(values, Index{-1}, values); }},
      {"broadcast of float32, but " + std::to_string(huge) + too_many, [&] { c.broadcast(values, huge, 0); }},
      {"all_gather of bytes, but the shard counts add up to more bytes than a 64-bit number can count",
       [&] { c.all_gather(bytes, huge, bytes + 1); }},
      {"send of float32, but peer 2" + none, [&] { c.send(values, Index{1}, 2); }},
      {"recv of float32, but peer -1" + none, [&] { c.recv(values, Index{1}, -1); }},
      {"broadcast of float32, but root 2" + none, [&] { c.broadcast(values, Index{1}, 2); }},
      {"send of float32, but " + itself, [&] { c.send(values, Index{1}, c.rank()); }},
      {"all_reduce of float32, but the memory to sum up is null; it takes 4 bytes",
       [&] { c.all_reduce(static_cast<float*>(nullptr), Index{1}); }},
      {"all_gather of float32, but the memory for the gathered values is null; it takes 8 bytes",
       [&] { c.all_gather(values, Index{1}, static_cast<float*>(nullptr)); }},
      {"all_gather of float32, but the memory of the shard is null; it takes 12 bytes",
       [&] { c.all_gather(static_cast<const float*>(nullptr), Index{3}, values); }},
      {"reduce_scatter of float32, but the memory to sum up is null; it takes 8 bytes",
       [&] { c.reduce_scatter(static_cast<const float*>(nullptr), Index{1}, values); }},
      {"reduce_scatter of float32, but the memory for the sums is null; it takes 4 bytes",
       [&] { c.reduce_scatter(values, Index{1}, static_cast<float*>(nullptr)); }},
      {"recv of float32, but the memory to receive into is null; it takes 8 bytes",
       [&] { c.recv(static_cast<float*>(nullptr), Index{2}, (c.rank() + 1) % n); }},
      {"all_to_all of float32, but the memory to receive into is null; it takes 8 bytes",
       [&] { c.all_to_all_v(values, ones, static_cast<float*>(nullptr), ones); }},
      {"all_reduce of bytes, but " + no_sum, [&] { c.all_reduce(bytes, Index{1}); }},
      {"all_gather of float32, but " + in_place,
       [&] { c.all_gather(values + (c.rank() == 0 ? 1 : 0), Index{2}, values); }},
      {"reduce_scatter of float32, but " + in_place,
       [&] { c.reduce_scatter(values, Index{2}, values + (c.rank() == 0 ? 1 : 0)); }},
      {"reduce_scatter of float32, but " + in_place,
       [&] {
         c.reduce_scatter_v(values, {2, 1}, values + 1);
       }},
      {"all_to_all of float32, but " + apart, [&] { c.all_to_all_v(values, ones, values + 1, ones); }},
      {"all_gather of float32, but there are 3 shard counts" + counts,
       [&] {
         c.all_gather_v(values, {1, 1, 1}, values + 1);
       }},
      {"all_to_all of float32, but there are 1 counts to send" + counts,
       [&] { c.all_to_all_v(values, {1}, values + 8, ones); }},
      {"all_to_all of float32, but there are 3 counts to receive" + counts,
       [&] {
         c.all_to_all_v(values, ones, values + 8, {1, 1, 1});
       }},
      {"reduce_scatter of float32, but there are 1 piece counts" + counts,
       [&] { c.reduce_scatter_v(values, {1}, values + 8); }},
      {"reduce_scatter of float32, but the count -1 is negative; counts start at 0",
       [&] {
         c.reduce_scatter_v(values, {1, -1}, values + 8);
       }},
      {"all_to_all of float32, but it sends 2 elements to itself and receives 1 from itself; the two must be equal",
       [&] { c.all_to_all_v(values, more, values + 8, ones); }},
      {"all_to_all of float32, but it sends 1 elements to itself and receives 2 from itself; the two must be equal",
       [&] { c.all_to_all_v(values, ones, values + 8, more); }},
      // By a single byte, at either end.
      {"all_gather of bytes, but " + in_place, [&] { c.all_gather(bytes + 1 - c.rank(), Index{1}, bytes); }},
      {"all_to_all of bytes, but " + apart, [&] { c.all_to_all_v(bytes, ones, bytes + 1, ones); }},
      {"all_to_all of bytes, but " + apart, [&] { c.all_to_all_v(bytes + 1, ones, bytes, ones); }},
      {"all_gather of bytes, but the shard counts add up to more bytes than a 64-bit number can count",
       [&] {
         c.all_gather_v(bytes, {huge, huge}, bytes + 1);
       }},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string name = "refusal " + std::to_string(i) + ": ";
    try {
      all[i].call();
      return name + "was accepted";
    } catch (const std::invalid_argument& error) {
      const std::string who = "rank " + std::to_string(c.rank()) + " of group " + c.group() + " asked for ";
      if (error.what() != who + all[i].words) return name + error.what();
    }
  }
  if (!c.ledger().lines().empty()) return "a refused call is in the ledger";
  // Two halves of one array are apart, whichever comes first.
  c.all_to_all_v(values, ones, values + n, ones);
  c.all_to_all_v(values + n, ones, values, ones);
  c.all_gather(values, Index{1}, values + 1);
  c.all_gather(values + n, Index{1}, values);
  c.reduce_scatter(values, Index{1}, values + n);
  c.reduce_scatter(values + 1, Index{1}, values);
  // Whoever catches the error can go on.
  if (c.all_reduce(Flat{1}) != Flat{2}) return "the group is broken";
  return "";
}

}  // namespace

TEST_CASE("wrong arguments: refused with a sentence, on the rank that makes them, before anything moves") {
  CHECK(joined(on_fibers(2, refusals)) == "");
}

TEST_CASE("calls: as a text, with what went in and out, and the other rank where there is one") {
  using Kind = CollectiveKind;
  const auto words = [](Kind kind, int peer) { return text(Call{"dp", kind, ElementType::bfloat16, 3, 4, peer}); };
  const std::string counts = " of bfloat16, 3 in, 4 out";
  for (const auto& [kind, name] : std::vector<std::pair<Kind, std::string>>{{Kind::all_gather, "all_gather"},
                                                                            {Kind::reduce_scatter, "reduce_scatter"},
                                                                            {Kind::all_reduce, "all_reduce"},
                                                                            {Kind::all_to_all, "all_to_all"}})
    CHECK(words(kind, -1) == "dp " + name + counts);
  CHECK(words(Kind::broadcast, 0) == "dp broadcast" + counts + ", root 0");
  CHECK(words(Kind::send, 0) == "dp send" + counts + ", peer 0");
  CHECK(words(Kind::recv, 5) == "dp recv" + counts + ", peer 5");
  CHECK(words(Kind::wait, 2) == "dp wait, peer 2");
  CHECK(words(Kind::barrier, -1) == "dp barrier");
}

TEST_CASE("a group: rank and size must go together") {
  sim::MemoryGroup group(2, "memory");
  const auto backend = group.backend(0);
  Ledger ledger;
  for (const auto& [rank, size] : {std::pair(2, 2), {-1, 2}, {0, 0}})
    CHECK_THROWS_WITH_AS(Communicator("g", rank, size, *backend, ledger),
                         ("group g was to have rank " + std::to_string(rank) + " of " + std::to_string(size) +
                          ", but ranks go from 0 to size − 1")
                             .c_str(),
                         std::invalid_argument);
  CHECK_THROWS_AS(group.backend(2), std::invalid_argument);
  CHECK_THROWS_AS(sim::MemoryGroup(0, "memory"), std::invalid_argument);
}
