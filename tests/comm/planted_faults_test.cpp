#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/errors.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/comm/rank_runners.hpp"

// The checks of the other tests, made to fail: a backend that does one thing wrong on one rank must not get past
// them.

using namespace muonwalk;
using namespace muonwalk::testing;

namespace {

// A receive that was passed on: its memory, and what else happens when it is waited for.
struct Received : PostedMessage {
  void wait(const WaitsFor& waits_for) override {
    inner->wait(waits_for);
    if (then) then();
  }
  std::unique_ptr<PostedMessage> inner;
  std::function<void()> then;
};

// A message that is posted nowhere.
struct Nothing : PostedMessage {
  void wait(const WaitsFor&) override {}
};

enum class Fault { none, flipped_bit, changed_places, not_sent, not_received };

// Passes on every message, and does one thing wrong with the tenth of at least a few bytes.
class FaultyBackend : public Backend {
 public:
  FaultyBackend(Backend& inner, Fault fault) : inner_(inner), fault_(fault) {}

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    if (fault_ == Fault::not_sent && bytes >= 8 && ++seen_ == 10) return std::make_unique<Nothing>();
    return inner_.post_send(envelope, peer, data, bytes);
  }

  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    auto* memory = static_cast<unsigned char*>(data);
    const bool due = fault_ != Fault::not_sent && bytes >= 8 && ++seen_ >= 10;
    if (due && fault_ == Fault::not_received && seen_ == 10) return std::make_unique<Nothing>();
    auto received = std::make_unique<Received>();
    received->inner = inner_.post_receive(envelope, peer, data, bytes);
    if (due && fault_ == Fault::flipped_bit && seen_ == 10) received->then = [memory] { memory[5] ^= 1; };
    const bool same_call = !envelope.from_rank_to_rank() && envelope.number == before_.number;
    if (due && fault_ == Fault::changed_places && same_call && bytes == bytes_before_) {
      received->then = [memory, bytes, other = memory_before_] { std::swap_ranges(memory, memory + bytes, other); };
    }
    before_ = envelope;
    bytes_before_ = bytes;
    memory_before_ = memory;
    return received;
  }

  void close(const std::string& reason) override { inner_.close(reason); }

 private:
  Backend& inner_;
  Fault fault_;
  int seen_ = 0;
  Envelope before_;
  std::int64_t bytes_before_ = 0;
  unsigned char* memory_before_ = nullptr;
};

// Adds something to the ledger at the end of the tenth call.
struct FalseCount : CallObserver {
  void ended(const Call& call) override {
    if (++calls == 10) ledger->add(call.group, call.kind, call.type, 0, change);
  }
  Ledger* ledger = nullptr;
  Traffic change;
  int calls = 0;
};

std::string complaints_with(Fault fault, const Traffic& false_count = Traffic()) {
  RandomCalls calls;
  calls.seed = 9;
  calls.calls = 150;
  const auto wrapper = [&](int rank, Backend& inner) -> std::unique_ptr<Backend> {
    if (rank != 1) return nullptr;
    return std::make_unique<FaultyBackend>(inner, fault);
  };
  const auto rank = [&](Communicator& c) {
    FalseCount count;
    count.ledger = &c.ledger();
    count.change = c.rank() == 1 ? false_count : Traffic();
    c.observe(count);
    return make_random_calls(c, calls);
  };
  return joined(on_fibers(3, rank, wrapper));
}

}  // namespace

TEST_CASE("planted faults: an honest backend passes") { CHECK(complaints_with(Fault::none) == ""); }

TEST_CASE("planted faults: one flipped bit in one message is seen") {
  CHECK(complaints_with(Fault::flipped_bit).find("differs") != std::string::npos);
}

TEST_CASE("planted faults: two messages that change places are seen") {
  CHECK(complaints_with(Fault::changed_places).find("differs") != std::string::npos);
}

TEST_CASE("planted faults: a message that is not sent is seen") { CHECK(complaints_with(Fault::not_sent) != ""); }

TEST_CASE("planted faults: a message that is sent but not received is seen") {
  CHECK(complaints_with(Fault::not_received) != "");
}

TEST_CASE("planted faults: a byte too many, a byte too few and a forgotten message in the ledger are seen") {
  for (const Traffic& change :
       {Traffic{1, 0, 0, 0}, Traffic{-1, 0, 0, 0}, Traffic{0, 0, -1, 0}, Traffic{0, 0, 0, -1}}) {
    CHECK(complaints_with(Fault::none, change).find(" predicted, ") != std::string::npos);
  }
}
