// What a communicator asks of its backend, and what it tells its observers, message by message: one rank alone, with a
// backend that writes down what is posted and has every message arrive when it is waited for.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "src/comm/communicator.hpp"
#include "src/comm/predicted_traffic.hpp"
#include "src/errors.hpp"

using namespace muonwalk;

namespace {

using Lines = std::vector<std::string>;

// Fails at the post or the wait that is `failing`, counted from 1 over all of them.
class NotingBackend : public Backend {
 public:
  explicit NotingBackend(Lines& lines) : lines_(lines) {}

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    note("post a message to " + std::to_string(peer) + ", " + text_of(envelope, bytes) + place_of(data, bytes));
    return message(peer, bytes);
  }
  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    note("post room for one from " + std::to_string(peer) + ", " + text_of(envelope, bytes) + place_of(data, bytes));
    return message(peer, bytes);
  }
  void close(const std::string& reason) override { lines_.push_back("close: " + reason); }

  const float* memory = nullptr;  // of the caller: where data lies is written as a place in it
  int failing = 0;

 private:
  struct Message : PostedMessage {
    void wait(const WaitsFor& waits_for) override {
      waits_for(peer);
      backend->note("the backend waits");
    }
    NotingBackend* backend = nullptr;
    int peer = 0;
  };

  void note(const std::string& line) {
    lines_.push_back(line);
    if (++done_ == failing) throw RunError("the cable was cut");
  }
  std::unique_ptr<PostedMessage> message(int peer, std::int64_t) {
    auto posted = std::make_unique<Message>();
    posted->backend = this;
    posted->peer = peer;
    return posted;
  }
  static std::string text_of(const Envelope& envelope, std::int64_t bytes) {
    return std::string(collective_name(envelope.kind)) + " number " + std::to_string(envelope.number) + " of " +
           element_name(envelope.type) + ", root " + std::to_string(envelope.root) + ", " + std::to_string(bytes) +
           " bytes";
  }
  std::string place_of(const void* data, std::int64_t bytes) const {
    if (bytes == 0) return "";
    const auto at = static_cast<const std::byte*>(data) - reinterpret_cast<const std::byte*>(memory);
    return at >= 0 && at < 400 ? " at " + std::to_string(at) : " of its own";
  }

  Lines& lines_;
  int done_ = 0;
};

class NotingObserver : public CallObserver {
 public:
  explicit NotingObserver(Lines& lines) : lines_(lines) {}
  void begins(const Call& call) override { lines_.push_back("begins: " + text(call)); }
  void ended(const Call& call) override { lines_.push_back("ended: " + text(call)); }
  void waits(CollectiveKind kind, int peer) override {
    lines_.push_back("waits in " + std::string(collective_name(kind)) + " for " + std::to_string(peer));
  }
  void goes_on() override { lines_.push_back("goes on"); }
  std::int64_t now_ns() override { return 7; }
  void moved(const Call& call, const Message& message) override {
    lines_.push_back(std::string("moved in ") + collective_name(call.kind) + (message.sent ? ": to " : ": from ") +
                     std::to_string(message.peer) + ", " + std::to_string(message.bytes) + " bytes, number " +
                     std::to_string(message.number) + (message.from_rank_to_rank ? " from rank to rank" : "") +
                     (message.began_ns == 7 ? "" : ", at no time"));
  }

 private:
  Lines& lines_;
};

// One rank of a group, and all that it needs.
struct Alone {
  Alone(int rank, int size) : communicator("dp 2", rank, size, backend, ledger) {
    backend.memory = memory.data();
    communicator.observe(observer);
  }
  Lines lines;
  std::vector<float> memory = std::vector<float>(100);
  NotingBackend backend{lines};
  NotingObserver observer{lines};
  Ledger ledger;
  Communicator communicator;
};

// Every kind of call, with counts that are all different, each with what it has to move.
struct Moves {
  std::function<void(Communicator&, float*)> call;
  Traffic traffic;
};

std::vector<Moves> every_call(int rank, int size) {
  constexpr ElementType kType = ElementType::float32;
  std::vector<Index> counts, others;
  for (int r = 0; r < size; ++r) {
    counts.push_back(r + 2);
    others.push_back(r == rank ? r + 2 : 7 - r);
  }
  std::vector<Moves> all = {
      {[](Communicator& c, float*) { c.barrier(); }, barrier_traffic(size)},
      {[](Communicator& c, float* at) { c.all_gather(at, 3, at + 10); }, all_gather_traffic(size, 3, kType)},
      {[=](Communicator& c, float* at) { c.all_gather_v(at, counts, at + 10); },
       all_gather_v_traffic(rank, counts, kType)},
      {[](Communicator& c, float* at) { c.reduce_scatter(at + 10, 2, at); }, reduce_scatter_traffic(size, 2, kType)},
      {[=](Communicator& c, float* at) { c.reduce_scatter_v(at + 10, counts, at); },
       reduce_scatter_v_traffic(rank, counts, kType)},
      {[](Communicator& c, float* at) { c.all_reduce(at + 10, 10); }, all_reduce_traffic(rank, size, 10, kType)},
      {[=](Communicator& c, float* at) { c.all_to_all_v(at, counts, at + 50, others); },
       all_to_all_v_traffic(rank, counts, others, kType)},
      {[=](Communicator& c, float* at) { c.broadcast(at + 5, 9, size - 1); },
       broadcast_traffic(rank, size - 1, size, 9, kType)},
      {[=](Communicator& c, float* at) { c.broadcast(at + 6, 8, rank); },
       broadcast_traffic(rank, rank, size, 8, kType)},
  };
  if (size == 1) return all;
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  all.push_back({[=](Communicator& c, float* at) { c.send(at + 1, 4, right); }, send_traffic(4, kType)});
  all.push_back({[=](Communicator& c, float* at) { c.recv(at + 2, 5, left); }, recv_traffic(5, kType)});
  return all;
}

int count_of(const Lines& lines, const std::string& begin) {
  return static_cast<int>(std::count_if(
      lines.begin(), lines.end(), [&](const std::string& line) { return line.compare(0, begin.size(), begin) == 0; }));
}

std::string error_in(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunError& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "";
}

}  // namespace

TEST_CASE(
    "posted messages: every call posts, waits for, counts and tells as many as the formulas say, receives before "
    "sends, "
    "numbered one by one") {
  for (const auto& [rank, size] : std::vector<std::pair<int, int>>{{0, 1}, {1, 4}, {4, 5}}) {
    Alone alone(rank, size);
    std::map<std::string, int> numbers;  // of the messages that were told of, by direction and peer
    for (const Moves& moves : every_call(rank, size)) {
      alone.lines.clear();
      const Traffic before = alone.ledger.total();
      moves.call(alone.communicator, alone.memory.data());
      const Lines& lines = alone.lines;
      REQUIRE(lines.size() >= 2);
      CAPTURE(lines.front());
      CHECK(alone.ledger.total() - before == moves.traffic);
      CHECK(lines.front().compare(0, 8, "begins: ") == 0);
      CHECK(lines.back() == "ended: " + lines.front().substr(8));
      const int out = static_cast<int>(moves.traffic.messages_sent),
                in = static_cast<int>(moves.traffic.messages_received);
      CHECK(count_of(lines, "post a message") == out);
      CHECK(count_of(lines, "post room") == in);
      CHECK(count_of(lines, "the backend waits") == out + in);
      CHECK(count_of(lines, "goes on") == out + in);
      CHECK(count_of(lines, "moved in") == out + in);
      int posted = 0;  // since the last wait: room comes before what is sent
      for (const std::string& line : lines) {
        if (line.compare(0, 14, "post a message") == 0) ++posted;
        if (line.compare(0, 9, "post room") == 0) CHECK(posted == 0);
        if (line == "the backend waits") posted = 0;
        CHECK(line.find("at no time") == std::string::npos);
        if (line.compare(0, 8, "moved in") != 0) continue;
        const std::size_t peer = line.find(": "), comma = line.find(", "), number = line.find("number ");
        const bool apart = line.find("from rank to rank") != std::string::npos;
        const std::string way = line.substr(peer, comma - peer) + (apart ? " apart" : "");
        CHECK(std::stoi(line.substr(number + 7)) == numbers[way]++);
      }
    }
  }
}

TEST_CASE(
    "posted messages: whatever fails first, the backend is closed once with the reason, and every later call says it") {
  using Calls = std::function<void(Communicator&, float*)>;
  const std::vector<Calls> calls = {
      [](Communicator& c, float* at) { c.all_gather(at, 3, at + 10); },
      [](Communicator& c, float* at) { c.send(at, 3, 2); },
      [](Communicator& c, float* at) { c.recv(at, 3, 2); },
      [](Communicator& c, float* at) { c.isend(at, 3, 2).wait(); },
      [](Communicator& c, float* at) { c.irecv(at, 3, 2).wait(); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i)
    for (int failing = 1; failing <= 12; ++failing) {
      CAPTURE(i);
      CAPTURE(failing);
      Alone alone(1, 4);
      alone.backend.failing = failing;
      Communicator& c = alone.communicator;
      float* at = alone.memory.data();
      const std::string first = error_in([&] { calls[i](c, at); });
      const int steps = i == 0 ? 12 : 2;  // six posts and six waits, or a post and a wait
      if (failing > steps) {
        CHECK(first == "");
        continue;
      }
      CHECK(first == "the cable was cut");
      CHECK(alone.lines.back() == "close: the cable was cut");
      for (const std::string& line : alone.lines) CHECK(line.find("moved in all_gather") == std::string::npos);
      const std::size_t before = alone.lines.size(), calls_before = alone.ledger.lines().size();
      alone.backend.failing = 0;
      for (const Calls& call : calls) CHECK(error_in([&] { call(c, at); }) == "the cable was cut");
      CHECK(error_in([&] { c.barrier(); }) == "the cable was cut");
      CHECK(error_in([&] { c.require_whole(); }) == "the cable was cut");
      CHECK(alone.lines.size() == before);  // nothing is posted, told or closed any more
      CHECK(alone.ledger.lines().size() == calls_before);
    }
}

TEST_CASE(
    "a transfer that is waited for again, or that was handed on, is refused in a sentence, and nothing is broken") {
  Alone alone(1, 3);
  Communicator& c = alone.communicator;
  float* at = alone.memory.data();
  const auto refusal = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "";
  };
  const std::string sentence = "a transfer was to be waited for that is not under way; each is waited for once";
  Transfer sent = c.isend(at, 2, 0), first = c.irecv(at + 4, 3, 2);
  Transfer received = std::move(first);
  CHECK(refusal([&] { first.wait(); }) == sentence);
  received.wait();
  sent.wait();
  CHECK(refusal([&] { received.wait(); }) == sentence);
  CHECK(refusal([&] { sent.wait(); }) == sentence);
  c.require_whole();
  CHECK(alone.ledger.total() == Traffic{8, 12, 1, 1});
  { const Transfer dropped = c.irecv(at + 4, 3, 2); }
  CHECK(alone.lines.back() ==
        "close: rank 1 of group dp 2 dropped a posted transfer (dp 2 recv of float32, 0 in, 3 out, peer 2) without "
        "waiting for it; call wait() on every isend and irecv");
}
