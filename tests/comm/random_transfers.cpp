#include <algorithm>
#include <cstring>
#include <list>
#include <random>
#include <vector>

#include "src/comm/predicted_traffic.hpp"
#include "tests/comm/random_calls.hpp"

namespace muonwalk::testing {

namespace {

using Random = std::mt19937_64;

// What every rank knows of a message.
struct Planned {
  int from, to;
  Index count;
  std::uint64_t number;
  bool send_blocks, recv_blocks;
};

// The serial oracle: element `i` of a message.
float element(std::uint64_t number, Index i) {
  std::uint64_t x = number * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(i);
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  return static_cast<float>(x >> 40);
}

struct PostedTransfer {
  Planned planned;
  bool sends;
  std::vector<float> values;
  Transfer transfer;
};

class TransferPlayer {
 public:
  TransferPlayer(Communicator& communicator, const RandomTransfers& settings)
      : c_(communicator),
        settings_(settings),
        same_(settings.seed),
        own_(settings.seed * 1000 + std::uint64_t(c_.rank())) {}

  std::string play() {
    for (int round = 0; round < settings_.rounds; ++round) {
      const std::vector<Planned> plan = planned_round();
      // Up to three collectives, each after as many of the round's messages as all ranks agree on.
      std::vector<std::size_t> collectives_after;
      for (int i = 0; i < 3; ++i) collectives_after.push_back(same_() % (plan.size() + 1));
      for (std::size_t i = 0; i <= plan.size(); ++i) {
        const auto due = std::count(collectives_after.begin(), collectives_after.end(), i);
        for (int k = 0; k < due && wrong_.empty(); ++k) collective();
        if (i < plan.size()) post(plan[i]);
      }
      for (const Planned& planned : plan) block(planned);
      const bool last = round + 1 == settings_.rounds;
      const std::size_t left = last ? 0 : under_way_.size() / 3;
      while (under_way_.size() > left && wrong_.empty()) wait_for_one();
      if (!wrong_.empty()) return "round " + std::to_string(round) + ": " + wrong_;
    }
    const std::string difference = first_difference(predicted_, c_.ledger());
    if (!difference.empty()) return difference;
    c_.barrier();  // nobody leaves while another still waits
    return "";
  }

 private:
  // All messages of a round. Between two ranks and in one direction, those that block come after those that don't, and
  // they block on one side only, so that no rank waits for one that waits for it.
  std::vector<Planned> planned_round() {
    std::vector<Planned> plan, blocking;
    const int n = c_.size();
    for (int m = 0; n > 1 && m < settings_.messages; ++m) {
      const int from = static_cast<int>(same_() % std::uint64_t(n));
      const int to = (from + 1 + static_cast<int>(same_() % std::uint64_t(n - 1))) % n;
      const Index count = same_() % 6 == 0 ? 0 : static_cast<Index>(same_() % std::uint64_t(settings_.largest + 1));
      const bool blocks = same_() % 5 == 0;
      const bool receiver = (from + to + m / settings_.messages) % 2 == 0;
      (blocks ? blocking : plan).push_back({from, to, count, ++messages_, blocks && !receiver, blocks && receiver});
    }
    plan.insert(plan.end(), blocking.begin(), blocking.end());
    return plan;
  }

  std::vector<float> values_of(const Planned& planned) const {
    std::vector<float> values(static_cast<std::size_t>(planned.count));
    for (Index i = 0; i < planned.count; ++i) values[static_cast<std::size_t>(i)] = element(planned.number, i);
    return values;
  }

  void predict(const Planned& planned, bool sends, bool posted) {
    const auto type = ElementType::float32;
    if (sends) predicted_.add(c_.group(), CollectiveKind::send, type, 1, send_traffic(planned.count, type));
    if (!sends) predicted_.add(c_.group(), CollectiveKind::recv, type, 1, recv_traffic(planned.count, type));
    if (posted) predicted_.add(c_.group(), CollectiveKind::wait, type, 1, Traffic());
  }

  // What is posted at once; a blocking half of it comes later.
  void post(const Planned& planned) {
    if (planned.from == c_.rank() && !planned.send_blocks) {
      std::vector<float> values = values_of(planned);
      Transfer transfer = c_.isend(values.data(), planned.count, planned.to);
      under_way_.push_back({planned, true, std::move(values), std::move(transfer)});
      predict(planned, true, true);
    }
    if (planned.to == c_.rank() && !planned.recv_blocks) {
      std::vector<float> values(static_cast<std::size_t>(planned.count), -1.0f);
      Transfer transfer = c_.irecv(values.data(), planned.count, planned.from);
      under_way_.push_back({planned, false, std::move(values), std::move(transfer)});
      predict(planned, false, true);
    }
  }

  void block(const Planned& planned) {
    if (planned.from == c_.rank() && planned.send_blocks) {
      c_.send(values_of(planned).data(), planned.count, planned.to);
      predict(planned, true, false);
    }
    if (planned.to == c_.rank() && planned.recv_blocks) {
      std::vector<float> values(static_cast<std::size_t>(planned.count), -1.0f);
      c_.recv(values.data(), planned.count, planned.from);
      predict(planned, false, false);
      compare(planned, values);
    }
  }

  void wait_for_one() {
    auto chosen = std::next(under_way_.begin(), static_cast<std::ptrdiff_t>(own_() % under_way_.size()));
    chosen->transfer.wait();
    compare(chosen->planned, chosen->values);  // what was sent must not have changed either
    under_way_.erase(chosen);
  }

  void compare(const Planned& planned, const std::vector<float>& values) {
    const std::vector<float> expected = values_of(planned);
    if (!expected.empty() && std::memcmp(expected.data(), values.data(), expected.size() * sizeof(float)) != 0)
      wrong_ = "message " + std::to_string(planned.number) + " from " + std::to_string(planned.from) + " to " +
               std::to_string(planned.to) + " holds something else";
  }

  void collective() {
    const auto type = ElementType::float32;
    const Index count = 1 + static_cast<Index>(same_() % std::uint64_t(settings_.largest + 1));
    if (same_() % 3 == 0) {
      c_.barrier();
      predicted_.add(c_.group(), CollectiveKind::barrier, ElementType::bytes, 1, barrier_traffic(c_.size()));
      return;
    }
    Flat values(static_cast<std::size_t>(count), static_cast<float>(c_.rank() + 1));
    const float sum = static_cast<float>(c_.size() * (c_.size() + 1) / 2);
    values = c_.all_reduce(values);
    predicted_.add(c_.group(), CollectiveKind::all_reduce, type, 1,
                   all_reduce_traffic(c_.rank(), c_.size(), count, type));
    if (values != Flat(static_cast<std::size_t>(count), sum)) wrong_ = "an all_reduce between transfers";
  }

  Communicator& c_;
  const RandomTransfers& settings_;
  Random same_, own_;  // every rank draws the same of the first
  std::uint64_t messages_ = 0;
  std::list<PostedTransfer> under_way_;
  Ledger predicted_;
  std::string wrong_;
};

}  // namespace

std::string make_random_transfers(Communicator& communicator, const RandomTransfers& settings) {
  return TransferPlayer(communicator, settings).play();
}

}  // namespace muonwalk::testing
