#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "src/comm/predicted_traffic.hpp"
#include "src/numerics/tree_sum.hpp"
#include "tests/comm/mailbox.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/comm/rank_runners.hpp"

// A backend that has an all-gather of its own: the communicator uses that one, and nothing above it changes.

using namespace muonwalk;
using namespace muonwalk::testing;

namespace {

// Where all ranks of a group lay down what they put in.
struct Table {
  explicit Table(int size) : shards(static_cast<std::size_t>(size)) {}

  // Returns when all have come.
  void meet() {
    std::unique_lock<std::mutex> lock(mutex);
    const int round = came / static_cast<int>(shards.size());
    ++came;
    changed.notify_all();
    changed.wait(lock, [&] { return came / static_cast<int>(shards.size()) > round; });
  }

  std::vector<const void*> shards;
  std::mutex mutex;
  std::condition_variable changed;
  int came = 0;
};

// Counts the calls that it is told of, whether somebody waited for all others, and what moved.
struct Witness : CallObserver {
  void begins(const Call& call) override { gathers += call.kind == CollectiveKind::all_gather; }
  void ended(const Call& call) override { ended_gathers += call.kind == CollectiveKind::all_gather; }
  void waits(CollectiveKind kind, int peer) override { waited += kind == CollectiveKind::all_gather && peer == -1; }
  void moved(const Call&, const Message& message) override {
    (message.sent ? traffic.bytes_sent : traffic.bytes_received) += message.bytes;
    (message.sent ? traffic.messages_sent : traffic.messages_received) += 1;
    // All messages of collectives between two ranks are numbered in one order, be they the backend's or not.
    if (message.number != numbers[{message.sent, message.from_rank_to_rank, message.peer}]++) in_order = false;
    if (message.began_ns <= 0) in_order = false;
  }
  int gathers = 0, ended_gathers = 0, waited = 0;
  Traffic traffic;
  bool in_order = true;
  std::map<std::tuple<bool, bool, int>, std::int64_t> numbers;
};

// What the ranks of a group were asked for, of whatever kind.
struct NativeTable : Table {
  explicit NativeTable(int size) : Table(size), asked(static_cast<std::size_t>(size)) {}
  std::vector<NativeCall> asked;
};

// Does every collective itself, element by element, from what all ranks put in.
class WithAll : public Backend {
 public:
  WithAll(Backend& inner, NativeTable& table, int rank, bool only_all_gathers)
      : inner_(inner), table_(table), rank_(rank), only_all_gathers_(only_all_gathers) {}

  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    if (has_native(envelope.kind, envelope.type)) throw std::logic_error("a collective was made of messages");
    return inner_.post_send(envelope, peer, data, bytes);
  }
  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    return inner_.post_receive(envelope, peer, data, bytes);
  }
  void close(const std::string& reason) override { inner_.close(reason); }
  bool has_native(CollectiveKind kind, ElementType) const override {
    if (only_all_gathers_) return kind == CollectiveKind::all_gather;
    return kind != CollectiveKind::send && kind != CollectiveKind::recv;
  }

  Traffic run_native(const NativeCall& call) override {
    table_.asked[static_cast<std::size_t>(rank_)] = call;
    table_.meet();
    std::vector<std::byte> result = result_of(call);
    const Traffic traffic = traffic_of(call);
    table_.meet();
    if (!result.empty()) std::memcpy(call.out, result.data(), result.size());
    table_.meet();
    for (int peer = 0; only_all_gathers_ && peer < size(); ++peer) {
      if (peer == rank_) continue;
      call.moved(true, peer, call.in_counts[0] * element_size(call.type));
      call.moved(false, peer, call.out_counts[static_cast<std::size_t>(peer)] * element_size(call.type));
    }
    return traffic;
  }

 private:
  int size() const { return static_cast<int>(table_.asked.size()); }

  // `count` elements that rank `r` put in, from element `first` on.
  const std::byte* put_in(int r, Index first) const {
    const NativeCall& call = table_.asked[static_cast<std::size_t>(r)];
    return static_cast<const std::byte*>(call.in) + first * element_size(call.type);
  }

  void append(std::vector<std::byte>& to, int r, Index first, Index count) const {
    if (count == 0) return;
    const std::byte* from = put_in(r, first);
    to.insert(to.end(), from, from + count * element_size(table_.asked[0].type));
  }

  std::vector<std::byte> sums(Index first, Index count, ElementType type) const {
    std::vector<std::byte> out(static_cast<std::size_t>(count * element_size(type)));
    const auto add = [&](auto element) {
      using T = decltype(element);
      std::vector<const T*> parts;
      for (int r = 0; r < size(); ++r) parts.push_back(reinterpret_cast<const T*>(put_in(r, first)));
      tree_sum(parts, count, reinterpret_cast<T*>(out.data()));
    };
    if (count == 0) return out;
    type == ElementType::float32 ? add(float()) : add(bfloat16());
    return out;
  }

  static Index before(const std::vector<Index>& counts, int rank) {
    return std::accumulate(counts.begin(), counts.begin() + rank, Index{0});
  }

  std::vector<std::byte> result_of(const NativeCall& call) const {
    const auto at = static_cast<std::size_t>(rank_);
    std::vector<std::byte> out;
    switch (call.kind) {
      case CollectiveKind::all_gather:
        for (int r = 0; r < size(); ++r) append(out, r, 0, call.out_counts.at(static_cast<std::size_t>(r)));
        break;
      case CollectiveKind::reduce_scatter:
        return sums(before(call.in_counts, rank_), call.in_counts.at(at), call.type);
      case CollectiveKind::all_reduce:
        return sums(0, call.in_counts.at(0), call.type);
      case CollectiveKind::all_to_all:
        for (int r = 0; r < size(); ++r)
          append(out, r, before(table_.asked[static_cast<std::size_t>(r)].in_counts, rank_),
                 call.out_counts.at(static_cast<std::size_t>(r)));
        break;
      case CollectiveKind::broadcast:
        append(out, call.root, 0, call.out_counts.at(0));
        break;
      default:
        break;
    }
    return out;
  }

  Traffic traffic_of(const NativeCall& call) const {
    switch (call.kind) {
      case CollectiveKind::all_gather:
        return all_gather_v_traffic(rank_, call.out_counts, call.type);
      case CollectiveKind::reduce_scatter:
        return reduce_scatter_v_traffic(rank_, call.in_counts, call.type);
      case CollectiveKind::all_reduce:
        return all_reduce_traffic(rank_, size(), call.in_counts.at(0), call.type);
      case CollectiveKind::all_to_all:
        return all_to_all_v_traffic(rank_, call.in_counts, call.out_counts, call.type);
      case CollectiveKind::broadcast:
        return broadcast_traffic(rank_, call.root, size(), call.in_counts.at(0), call.type);
      default:
        return barrier_traffic(size());
    }
  }

  Backend& inner_;
  NativeTable& table_;
  int rank_;
  bool only_all_gathers_;
};

}  // namespace

TEST_CASE(
    "native collectives of every kind: the backend is told what each rank puts in and gets out, and who is root") {
  for (const int size : {1, 2, 3, 5}) {
    NativeTable table(size);
    const auto wrapper = [&](int rank, Backend& inner) -> std::unique_ptr<Backend> {
      return std::make_unique<WithAll>(inner, table, rank, false);
    };
    const auto run = [](Communicator& c) {
      RandomCalls calls;
      calls.seed = 11;
      calls.calls = 150;
      return make_random_calls(c, calls);
    };
    CAPTURE(size);
    CHECK(joined(on_memory_threads(size, run, patient, wrapper)) == "");
  }
}

TEST_CASE("a native collective: is used, counted, observed and right, among others that are made of messages") {
  for (const int size : {1, 2, 4}) {
    NativeTable table(size);
    std::atomic<int> observed{0};
    const auto wrapper = [&](int rank, Backend& inner) -> std::unique_ptr<Backend> {
      return std::make_unique<WithAll>(inner, table, rank, true);
    };
    const auto run = [&](Communicator& c) -> std::string {
      Witness witness;
      c.observe(witness);
      RandomCalls calls;
      calls.seed = 3;
      const std::string wrong = make_random_calls(c, calls);
      if (witness.gathers != witness.ended_gathers || witness.gathers != witness.waited) return "the observer";
      if (witness.traffic != c.ledger().total()) return "the observer was told of other messages than the ledger";
      if (!witness.in_order) return "the messages are not numbered one by one";
      observed += witness.gathers;
      return wrong;
    };
    CAPTURE(size);
    CHECK(joined(on_memory_threads(size, run, patient, wrapper)) == "");
    CHECK(observed > 0);
  }
}
