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
      CHECK(joined(on_memory_threads(size, run)) == "");
      CHECK(with_words == size);
#if !defined(__SANITIZE_THREAD__)
      with_words = 0;
      CHECK(joined(on_gloo_threads(size, run)) == "");
      CHECK(with_words >= 1);
#endif
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

TEST_CASE("a timeout over memory: whoever comes later is told of it, and does not wait for itself") {
  const auto text = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const RunError& error) {
      return error.what();
    }
    return "";
  };
  const auto nobody_cares = [](int) {};
  for (const bool sends : {false, true}) {
    sim::MemoryGroup group(3, std::chrono::milliseconds(20), "memory");
    const auto zero = group.backend(0), one = group.backend(1), two = group.backend(2);
    float number = 0;
    const Envelope send{CollectiveKind::send, ElementType::float32, 0, 0},
        recv{CollectiveKind::recv, ElementType::float32, 0, 0};
    const auto waiting = sends ? zero->post_send(send, 1, &number, 4) : zero->post_receive(recv, 1, &number, 4);
    const std::string first = text([&] { waiting->wait(nobody_cares); });
    CHECK(first == std::string("rank 0 of group memory waited 20 ms in ") +
                       (sends ? "send, but rank 1 did not fetch a message" : "recv, but no message came from rank 1") +
                       "; a rank has stopped or makes other calls, or the timeout is too short");
    CHECK(text([&] { one->post_receive(recv, 0, &number, 4); }) == first);
    CHECK(text([&] { two->post_send(send, 1, &number, 4); }) == first);
  }
}

TEST_CASE("abort: wakes every rank that waits over memory with the given reason, and fails later calls") {
  sim::MemoryGroup group(3, patient);
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto backend = group.backend(rank);
      Ledger ledger;
      Communicator c("g", rank, 3, *backend, ledger);
      for (int attempt = 0; attempt < 2; ++attempt) {
        try {
          c.all_gather(values(3));
        } catch (const RunError& error) {
          if (std::string(error.what()) == "rank 2 was killed") ++woken;
        }
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  group.abort("rank 2 was killed");
  group.abort("a later reason does not count");
  for (std::thread& thread : threads) thread.join();
  CHECK(woken == 4);
}
