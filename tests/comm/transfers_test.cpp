#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "sim/fibers/fibers.hpp"
#include "src/errors.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/comm/rank_runners.hpp"

// Messages from rank to rank: those that block, and those that are posted and waited for later.

using namespace muonwalk;
using namespace muonwalk::testing;
using std::chrono::milliseconds;

namespace {

using OnRanks = std::function<std::vector<std::string>(int size, const RankFunction&, milliseconds timeout)>;

struct Place {
  const char* name;
  OnRanks run;
};

std::vector<Place> places() {
  const auto memory = [](int size, const RankFunction& f, milliseconds) { return on_fibers(size, f); };
  return {{"memory", memory}, {"Gloo on threads", on_gloo_threads}};
}

// Lets the others go on for a while: threads by the clock, fibers by their virtual one.
void rest(milliseconds time) {
  if (!sim::fiber::inside()) return std::this_thread::sleep_for(time);
  sim::fiber::sleep_until(sim::fiber::clock_ns() + std::chrono::nanoseconds(time).count());
}

// Below, at and above what travels in an envelope over Gloo.
const Index sizes[] = {0, 1, 4096, 4097, 200000};

std::string transfers_of(Communicator& c, std::uint64_t seed) {
  RandomTransfers settings;
  settings.seed = seed;
  settings.largest = seed % 3 == 0 ? 30000 : seed % 3 == 1 ? 2000 : 20;
  settings.messages = 20 * c.size();
  settings.rounds = 6;
  return make_random_transfers(c, settings);
}

}  // namespace

TEST_CASE("transfers on processes over Gloo: any number under way, mixed with collectives, equals the serial oracle") {
  for (const int size : {1, 2, 3, 5}) {
    sim::KeyStore store(sim::GlooDevice::board_keys(size), sim::GlooDevice::board_value_bytes(size));
    const auto run = [&](int rank) {
      return as_gloo_rank(rank, size, store, [&](Communicator& c) -> std::string {
        for (std::uint64_t seed = 1; seed <= 3; ++seed) {
          const std::string wrong = transfers_of(c, seed);
          if (!wrong.empty()) return wrong;
          c.ledger() = Ledger();
        }
        return "";
      });
    };
    CAPTURE(size);
    CHECK(joined(on_processes(size, run)) == "");
  }
}

TEST_CASE("transfers in one process: any number under way, mixed with collectives, equals the serial oracle") {
  for (const Place& place : places())
    for (int size = 1; size <= 6; ++size)
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CAPTURE(place.name);
        CAPTURE(size);
        CAPTURE(seed);
        CHECK(joined(place.run(
                  size, [&](Communicator& c) { return transfers_of(c, seed); }, patient)) == "");
      }
}

TEST_CASE("send: returns when its receive has been posted, not before, and without a wait for that; at all sizes") {
  for (const Place& place : places())
    for (const Index count : sizes) {
      std::atomic<bool> returned{false};
      const auto run = [&](Communicator& c) -> std::string {
        Flat memory = values(count);
        if (c.rank() == 0) {
          c.send(memory.data(), count, 1);
          returned = true;
          return "";
        }
        rest(milliseconds(20));
        if (returned) return "it returned before anybody had asked for the message";
        Transfer transfer = c.irecv(memory.data(), count, 0);
        for (int i = 0; i < 20000 && !returned; ++i) rest(milliseconds(1));
        if (!returned) return "it did not return although the receive was posted";
        transfer.wait();
        return "";
      };
      CAPTURE(place.name);
      CAPTURE(count);
      CHECK(joined(place.run(2, run, patient)) == "");
    }
}

TEST_CASE("two ranks that both send first are stuck at all sizes; isend, recv and wait work") {
  for (const Place& place : places())
    for (const Index count : sizes) {
      CAPTURE(place.name);
      CAPTURE(count);
      std::atomic<int> stuck{0};
      const auto send_first = [&](Communicator& c) -> std::string {
        Flat out = values(count), in = values(count);
        try {
          c.send(out.data(), count, 1 - c.rank());
          c.recv(in.data(), count, 1 - c.rank());
        } catch (const RunError&) {
          ++stuck;
        }
        return "";
      };
      CHECK(joined(place.run(2, send_first, milliseconds(100))) == "");
      CHECK(stuck == 2);
      const auto post_first = [&](Communicator& c) -> std::string {
        Flat out = values(count), in(static_cast<std::size_t>(count), 0.0f);
        Transfer transfer = c.isend(out.data(), count, 1 - c.rank());
        c.recv(in.data(), count, 1 - c.rank());
        transfer.wait();
        return in == out ? "" : "not what was sent";
      };
      CHECK(joined(place.run(2, post_first, patient)) == "");
    }
}

TEST_CASE("a transfer that is dropped: the next call says so, its peer does not wait for a timeout, memory is free") {
  for (const Place& place : places())
    for (const Index count : sizes)
      for (const bool sends : {true, false}) {
        CAPTURE(place.name);
        CAPTURE(count);
        const auto run = [&](Communicator& c) -> std::string {
          c.barrier();  // Gloo does not bear a connection that is closed before its other end is done with connecting
          if (c.rank() == 0) {
            {
              Flat memory = values(count);
              if (sends) c.isend(memory.data(), count, 1);
              if (!sends) c.irecv(memory.data(), count, 1);
            }
            const std::string error = error_of([&] { c.barrier(); });
            const std::string call = sends ? "send of float32, " + std::to_string(count) + " in, 0 out, peer 1"
                                           : "recv of float32, 0 in, " + std::to_string(count) + " out, peer 1";
            const std::string expected = "rank 0 of group " + c.group() + " dropped a posted transfer (" + c.group() +
                                         " " + call + ") without waiting for it; call wait() on every isend and irecv";
            if (error != expected) return "error: " + error;
            return error_of([&] { c.require_whole(); }) == expected ? "" : "the group is whole";
          }
          const std::string error = error_of([&] { c.all_reduce(values(3)); });
          return error.empty() || error.find("waited") != std::string::npos ? "error: " + error : "";
        };
        CHECK(joined(place.run(2, run, patient)) == "");
      }
}

TEST_CASE("memory: an offer whose rank has gone is withdrawn: its memory is neither read nor written any more") {
  const std::int64_t bytes = 4000;  // copied as soon as both ends have been posted
  const auto nobody_cares = [](int) {};
  for (const bool collective : {false, true})
    for (const bool sends : {false, true}) {
      CAPTURE(collective);
      CAPTURE(sends);
      sim::MemoryGroup group(3, "memory");
      const auto zero = group.backend(0), one = group.backend(1);
      std::vector<char> gone(bytes, 'g'), left(bytes, 'l'), elsewhere(bytes, 'e');
      Envelope envelope;
      envelope.kind = collective ? CollectiveKind::all_gather : sends ? CollectiveKind::send : CollectiveKind::recv;
      if (sends)
        zero->post_send(envelope, 1, gone.data(), bytes);  // and dropped at once, as an error would
      else
        zero->post_receive(envelope, 1, gone.data(), bytes);
      // Another message lies where that one was, most likely: with rank 2, which never answers.
      const auto with_another = sends ? zero->post_send(envelope, 2, elsewhere.data(), bytes)
                                      : zero->post_receive(envelope, 2, elsewhere.data(), bytes);
      if (!collective) envelope.kind = sends ? CollectiveKind::recv : CollectiveKind::send;
      const auto message =
          sends ? one->post_receive(envelope, 0, left.data(), bytes) : one->post_send(envelope, 0, left.data(), bytes);
      CHECK(gone == std::vector<char>(bytes, 'g'));
      CHECK(left == std::vector<char>(bytes, 'l'));
      CHECK(elsewhere == std::vector<char>(bytes, 'e'));
      CHECK_THROWS_AS(message->wait(nobody_cares), std::logic_error);  // it would wait, and here nobody can
    }
}

TEST_CASE("messages of another size or type: both ranks get an error, and it says what differs") {
  for (const Place& place : places())
    for (const Index count : sizes)
      for (const bool type : {true, false}) {
        CAPTURE(place.name);
        CAPTURE(count);
        std::atomic<int> said{0};
        const auto run = [&](Communicator& c) -> std::string {
          Flat memory = values(count + 10);
          FlatOf<bfloat16> others(static_cast<std::size_t>(2 * count + 20));
          const std::string error = error_of([&] {
            if (c.rank() == 0) c.send(memory.data(), count, 1);
            if (c.rank() == 1 && type) c.recv(others.data(), 2 * count, 0);
            if (c.rank() == 1 && !type) c.recv(memory.data(), count + 1, 0);
            c.barrier();
          });
          if (error.find("do not make the same calls: rank 1 is in recv of") != std::string::npos) ++said;
          return error.empty() || error.find("waited") != std::string::npos ? "error: " + error : "";
        };
        CHECK(joined(place.run(2, run, patient)) == "");
        CHECK(said >= 1);
      }
}

TEST_CASE("a posted transfer: its time runs from when it is waited for, however long ago it was posted") {
  const milliseconds timeout(1000);
  std::atomic<bool> waiting{false};
  const auto run = [&](Communicator& c) -> std::string {
    Flat memory = values(200000);
    return error_of([&] {
      if (c.rank() == 0) {
        Transfer transfer = c.irecv(memory.data(), Index(memory.size()), 1);
        std::this_thread::sleep_for(timeout + milliseconds(100));
        waiting = true;
        transfer.wait();
      } else {
        while (!waiting) std::this_thread::sleep_for(milliseconds(1));
        std::this_thread::sleep_for(milliseconds(100));
        c.send(memory.data(), Index(memory.size()), 0);
      }
    });
  };
  CHECK(joined(on_gloo_threads(2, run, timeout)) == "");
}

TEST_CASE("who waits too long gets a TimeoutError, which nobody takes for a peer that is lost, over Gloo") {
  std::atomic<bool> over{false};
  const auto run = [&](Communicator& c) -> std::string {
    if (c.rank() == 1) {
      while (!over) std::this_thread::sleep_for(milliseconds(1));
      return "";
    }
    Flat memory(4);
    std::string kind = "nothing was thrown";
    try {
      c.recv(memory.data(), 4, 1);
    } catch (const TimeoutError&) {
      kind = "";
    } catch (const std::exception& error) {
      kind = error.what();
    }
    over = true;
    return kind;
  };
  CHECK(joined(on_gloo_threads(2, run, milliseconds(200))) == "");
}
