#include <doctest/doctest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "src/errors.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/comm/rank_runners.hpp"

// A backend that moves the messages of a collective together, and adds up itself: nothing above it changes.

using namespace muonwalk;
using namespace muonwalk::testing;

namespace {

// Posts everything at once, and is done when it is waited for, or when something is to be added up.
class Together : public Backend, public Exchanger {
 public:
  explicit Together(Backend& inner) : inner_(inner) {}

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    if (!envelope.from_rank_to_rank()) throw std::logic_error("a collective was made of single messages");
    return inner_.post_send(envelope, peer, data, bytes);
  }
  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    return inner_.post_receive(envelope, peer, data, bytes);
  }
  void close(const std::string& reason) override { inner_.close(reason); }
  Exchanger* exchanger() override { return this; }

  void exchange(const Exchange& all) override {
    if (cut == 1) throw RunError("the cable was cut");
    wait();
    for (const auto& m : all.incoming) under_way_.push_back(inner_.post_receive(all.envelope, m.peer, m.data, m.bytes));
    for (const auto& m : all.outgoing) under_way_.push_back(inner_.post_send(all.envelope, m.peer, m.data, m.bytes));
    const auto* own = static_cast<const std::byte*>(all.own);
    if (all.own_bytes > 0 && own != all.own_place)
      std::copy(own, own + all.own_bytes, static_cast<std::byte*>(all.own_place));
  }
  std::byte* room(std::int64_t bytes) override {
    room_.assign(static_cast<std::size_t>(bytes), std::byte{0x5a});
    return room_.data();
  }
  void sum(ElementType type, const std::vector<const std::byte*>& parts, Index count, void* out) override {
    wait();
    type == ElementType::float32 ? add<float>(parts, count, out) : add<bfloat16>(parts, count, out);
  }
  void wait() override {
    if (cut == 2) throw RunError("the cable was cut");
    for (const auto& message : under_way_) message->wait([](int) {});
    under_way_.clear();
  }

  int cut = 0;  // 1: while it exchanges, 2: while it waits

 private:
  template <class T>
  static void add(const std::vector<const std::byte*>& parts, Index count, void* out) {
    std::vector<const T*> typed;
    for (const std::byte* part : parts) typed.push_back(reinterpret_cast<const T*>(part));
    tree_sum(typed, count, static_cast<T*>(out));
  }

  Backend& inner_;
  std::vector<std::byte> room_;
  std::vector<std::unique_ptr<PostedMessage>> under_way_;
};

// Whether somebody waited for all others in each collective, and what moved.
struct Witness : CallObserver {
  void ended(const Call& call) override { collectives += call.peer == -1 || call.kind == CollectiveKind::broadcast; }
  void waits(CollectiveKind, int peer) override { waited += peer == -1; }
  void goes_on() override { ++went_on; }
  void moved(const Call&, const Message& message) override {
    (message.sent ? traffic.bytes_sent : traffic.bytes_received) += message.bytes;
    (message.sent ? traffic.messages_sent : traffic.messages_received) += 1;
    if (message.number != numbers[{message.sent, message.from_rank_to_rank, message.peer}]++) in_order = false;
    if (message.began_ns != 7) in_order = false;
  }
  std::int64_t now_ns() override { return 7; }
  int collectives = 0, waited = 0, went_on = 0;
  Traffic traffic;
  bool in_order = true;
  std::map<std::tuple<bool, bool, int>, std::int64_t> numbers;
};

}  // namespace

TEST_CASE("an exchanger: every kind of call equals the naive reference, is counted and numbered, and told once done") {
  for (const int size : {1, 2, 3, 5}) {
    const auto wrapper = [](int, Backend& inner) { return std::make_unique<Together>(inner); };
    const auto run = [](Communicator& c) -> std::string {
      Witness witness;
      c.observe(witness);
      RandomCalls calls;
      calls.seed = 11;
      calls.calls = 150;
      const std::string wrong = make_random_calls(c, calls);
      if (witness.waited == 0 || witness.collectives != witness.waited) return "the observer was not told who waits";
      if (witness.went_on < witness.waited) return "the observer thinks that the rank still waits";
      if (witness.traffic != c.ledger().total()) return "the observer was told of other messages than the ledger";
      return witness.in_order ? wrong : "the messages are not numbered one by one";
    };
    CAPTURE(size);
    CHECK(joined(on_fibers(size, run, wrapper)) == "");
  }
}

TEST_CASE("an exchanger that fails, at once or later: the group is broken, and nobody is told that something moved") {
  for (const int cut : {1, 2}) {
    const auto wrapper = [cut](int, Backend& inner) {
      auto together = std::make_unique<Together>(inner);
      together->cut = cut;
      return together;
    };
    const auto run = [](Communicator& c) -> std::string {
      Witness witness;
      c.observe(witness);
      if (error_of([&] { c.all_reduce(values(4)); }) != "the cable was cut") return "no error";
      if (witness.traffic != Traffic()) return "the observer was told";
      return error_of([&] { c.barrier(); }) == "the cable was cut" ? "" : "the group is whole";
    };
    CAPTURE(cut);
    CHECK(joined(on_fibers(2, run, wrapper)) == "");
  }
}
