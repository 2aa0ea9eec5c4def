#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/errors.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/comm/rank_runners.hpp"

// The checks of the other tests, made to fail: a transport that does one thing wrong on one rank must not get past
// them.

using namespace muonwalk;
using namespace muonwalk::testing;

namespace {

using Lists = std::pair<std::vector<Transport::Outgoing>, std::vector<Transport::Incoming>>;

// Passes on every exchange, and does something wrong with the tenth that carries at least a few bytes both ways.
class FaultyTransport : public Transport {
 public:
  using Fault = std::function<void(FaultyTransport&, const Call&, Lists&, Ledger&)>;

  FaultyTransport(Transport& inner, Fault fault) : inner_(inner), fault_(std::move(fault)) {}

  void exchange(const Call& call, const std::vector<Outgoing>& outgoing, const std::vector<Incoming>& incoming,
                Ledger& ledger) override {
    const bool full = !outgoing.empty() && !incoming.empty() && outgoing[0].bytes >= 8 && incoming[0].bytes >= 8;
    Lists lists{outgoing, incoming};
    if (full && ++seen_ == 10) {
      fault_(*this, call, lists, ledger);
    } else {
      pass(call, lists, ledger);
    }
  }

  void pass(const Call& call, const Lists& lists, Ledger& ledger) {
    inner_.exchange(call, lists.first, lists.second, ledger);
  }

 private:
  Transport& inner_;
  Fault fault_;
  int seen_ = 0;
};

std::string complaints_with(const FaultyTransport::Fault& fault) {
  RandomCalls calls;
  calls.seed = 9;
  calls.calls = 150;
  const auto wrapper = [&](int rank, Transport& inner) -> std::unique_ptr<Transport> {
    if (rank != 1) return nullptr;
    return std::make_unique<FaultyTransport>(inner, fault);
  };
  return joined(on_memory_threads(
      3, [&](Communicator& c) { return make_random_calls(c, calls); }, std::chrono::milliseconds(500), wrapper));
}

}  // namespace

TEST_CASE("planted faults: an honest transport passes") {
  const auto honest = [](FaultyTransport& t, const Transport::Call& call, Lists& lists, Ledger& ledger) {
    t.pass(call, lists, ledger);
  };
  CHECK(complaints_with(honest) == "");
}

TEST_CASE("planted faults: one flipped bit in one message is seen") {
  const auto flip = [](FaultyTransport& t, const Transport::Call& call, Lists& lists, Ledger& ledger) {
    t.pass(call, lists, ledger);
    static_cast<unsigned char*>(lists.second[0].data)[5] ^= 1;
  };
  CHECK(complaints_with(flip).find("differs") != std::string::npos);
}

TEST_CASE("planted faults: two messages that change places are seen") {
  const auto exchange_places = [](FaultyTransport& t, const Transport::Call& call, Lists& lists, Ledger& ledger) {
    t.pass(call, lists, ledger);
    std::vector<char> first(static_cast<std::size_t>(std::min(lists.second[0].bytes, lists.second[1].bytes)));
    std::memcpy(first.data(), lists.second[0].data, first.size());
    std::memcpy(lists.second[0].data, lists.second[1].data, first.size());
    std::memcpy(lists.second[1].data, first.data(), first.size());
  };
  CHECK(complaints_with(exchange_places).find("differs") != std::string::npos);
}

TEST_CASE("planted faults: a message that is not sent is seen") {
  const auto omit = [](FaultyTransport& t, const Transport::Call& call, Lists& lists, Ledger& ledger) {
    lists.first.pop_back();
    t.pass(call, lists, ledger);
  };
  CHECK(complaints_with(omit) != "");
}

TEST_CASE("planted faults: a message that is sent but not waited for is seen") {
  const auto skip = [](FaultyTransport& t, const Transport::Call& call, Lists& lists, Ledger& ledger) {
    lists.second.pop_back();
    t.pass(call, lists, ledger);
  };
  CHECK(complaints_with(skip) != "");
}

TEST_CASE("planted faults: a byte too many, a byte too few and a forgotten message in the ledger are seen") {
  for (const int change : {1, -1}) {
    const auto miscount = [change](FaultyTransport& t, const Transport::Call& call, Lists& lists, Ledger& ledger) {
      t.pass(call, lists, ledger);
      const LedgerLine line = ledger.lines().back();
      Traffic wrong;
      wrong.bytes_sent = change;
      ledger.add(line.group, line.kind, line.type, 0, wrong);
    };
    CAPTURE(change);
    CHECK(complaints_with(miscount).find("were predicted") != std::string::npos);
  }
  const auto forget = [](FaultyTransport& t, const Transport::Call& call, Lists& lists, Ledger&) {
    Ledger elsewhere;
    elsewhere.begin_call("memory", call.kind, call.type);
    t.pass(call, lists, elsewhere);
  };
  CHECK(complaints_with(forget).find("were predicted") != std::string::npos);
}
