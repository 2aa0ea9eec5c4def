#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "src/errors.hpp"
#include "tests/comm/disagreements.hpp"

// Ranks that do not agree: all of them must notice soon, by an error and not by the end of the process.

using namespace muonwalk;
using namespace muonwalk::testing;

TEST_CASE("disagreement: every rank gets an error before any timeout, and who looks first says what differs") {
  for (const Disagreement& disagreement : disagreements()) {
    for (const int size : {2, 3, 4}) {
      CAPTURE(disagreement.name);
      CAPTURE(size);
      std::atomic<int> with_words{0};
      const auto run = [&](Communicator& c) { return expect_errors(c, disagreement, with_words); };
      CHECK(joined(on_fibers(size, run)) == "");
      CHECK(with_words == size);
      with_words = 0;
      CHECK(joined(on_gloo_threads(size, run)) == "");
      CHECK(with_words >= 1);
    }
  }
}

TEST_CASE("a mismatch: what belongs together, and the words for each kind of call that does not") {
  using Kind = CollectiveKind;
  const auto sentence = [](const Envelope& mine, std::int64_t bytes, const Envelope& theirs, std::int64_t their_bytes) {
    return mismatch("dp 0", 1, mine, bytes, 3, theirs, their_bytes);
  };
  const auto words = [](const std::string& mine, const std::string& theirs) {
    return "the ranks of group dp 0 do not make the same calls: rank 1 is in " + mine +
           " from rank 3, which sent for " + theirs +
           "; all ranks must make the same calls in the same order with the same sizes";
  };
  const Envelope recv{Kind::recv, ElementType::float32, 0, 0}, send{Kind::send, ElementType::float32, 0, 0},
      barrier{Kind::barrier, ElementType::bytes, 4, 0}, broadcast{Kind::broadcast, ElementType::bfloat16, 4, 2};
  CHECK(sentence(recv, 8, send, 8).empty());
  CHECK(sentence(barrier, 0, barrier, 0).empty());
  CHECK(sentence(broadcast, 6, broadcast, 6).empty());
  CHECK(sentence(recv, 8, send, 12) == words("recv of float32 with 8 bytes", "send of float32 with 12 bytes"));
  CHECK(sentence(recv, 8, recv, 8) == words("recv of float32 with 8 bytes", "recv of float32 with 8 bytes"));
  Envelope other = send;
  other.type = ElementType::bytes;
  CHECK(sentence(recv, 8, other, 8) == words("recv of float32 with 8 bytes", "send of bytes with 8 bytes"));
  const std::string of_broadcast = "broadcast from root 2 of bfloat16 with 6 bytes (after 4 collectives)";
  CHECK(sentence(barrier, 0, broadcast, 6) == words("barrier (after 4 collectives)", of_broadcast));
  other = broadcast;
  other.root = 0;
  CHECK(sentence(broadcast, 6, other, 6) ==
        words(of_broadcast, "broadcast from root 0 of bfloat16 with 6 bytes (after 4 collectives)"));
  other = broadcast;
  other.number = 5;
  CHECK(sentence(broadcast, 6, other, 6) ==
        words(of_broadcast, "broadcast from root 2 of bfloat16 with 6 bytes (after 5 collectives)"));
}

TEST_CASE("a group over memory that was closed: every rank that waits is told why, and later calls fail the same way") {
  int told = 0;
  const auto run = [&](Communicator& c) -> std::string {
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (c.rank() == 2) {
        c.backend().close("rank 2 was killed");
        c.backend().close("a later reason does not count");
      } else if (error_of([&] { c.all_gather(values(3)); }) == "rank 2 was killed") {
        ++told;
      }
    }
    return "";
  };
  CHECK(joined(on_fibers(3, run)) == "");
  CHECK(told == 4);
}
