// What a rank says of all its groups together. The backends are made up here: they move nothing and say what they are
// told to say.
#include "sim/ranks/rank_groups.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "src/errors.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// What one group's backend has to say.
struct GroupAccount {
  std::optional<std::int64_t> kernel;
  std::int64_t headers = 0;
};

struct TellingBackend : Backend {
  explicit TellingBackend(const GroupAccount& account) : says(account) {}
  std::unique_ptr<PostedMessage> post_send(const Envelope&, int, const void*, std::int64_t) override { return nullptr; }
  std::unique_ptr<PostedMessage> post_receive(const Envelope&, int, void*, std::int64_t) override { return nullptr; }
  std::optional<std::int64_t> kernel_bytes_sent() const override { return says.kernel; }
  std::int64_t header_bytes_sent() const override { return says.headers; }
  void close(const std::string&) override {}
  GroupAccount says;
};

}  // namespace

TEST_CASE("the kernel's counters of a rank are the sums over its groups, and known only where every group's are") {
  Options options;
  options.grid = Grid().dp(2).tp(3).pp(2);
  options.set_up.groups = {{"pair", {0, 7}}, {"nobody here", {1, 2}}};
  const std::vector<std::string> joined = {"dp", "tp", "pp", "pair"};  // rank 7 is in all of them
  Progress store(options.grid.size());
  for (unsigned subset = 0; subset < 1u << joined.size(); ++subset) {
    CAPTURE(subset);
    std::map<std::string, GroupAccount> accounts;
    std::int64_t sum = 0, headers = 0;
    for (std::size_t g = 0; g < joined.size(); ++g) {
      const bool known = (subset >> g & 1u) != 0;
      const std::int64_t digit = std::int64_t{1} << (4 * g);
      accounts[joined[g]] = {known ? std::optional(2 * digit) : std::nullopt, 5 * digit};
      sum += 2 * digit;
      headers += 5 * digit;
    }
    const RankGroups groups(RunGroups(options), options.set_up.link, 7, store.slot(7),
                            [&](const std::string&, const Group& group, int) -> std::unique_ptr<Backend> {
                              return std::make_unique<TellingBackend>(accounts.at(group.name));
                            });
    const bool all_known = subset + 1 == 1u << joined.size();
    CHECK(groups.kernel_bytes_sent() == (all_known ? std::optional(sum) : std::nullopt));
    CHECK(groups.header_bytes_sent() == headers);
  }
}

namespace {

// Messages that arrive as soon as they are waited for, and tell whoever looks how it was meanwhile.
struct ArrivingBackend : Backend {
  struct Arriving : PostedMessage {
    Arriving(int its_peer, const std::function<void()>& seen) : peer(its_peer), look(seen) {}
    void wait(const WaitsFor& waits_for) override {
      waits_for(peer);
      look();
    }
    int peer;
    const std::function<void()>& look;
  };
  explicit ArrivingBackend(const std::function<void()>& seen) : look(seen) {}
  std::unique_ptr<PostedMessage> post_send(const Envelope&, int peer, const void*, std::int64_t) override {
    return std::make_unique<Arriving>(peer, look);
  }
  std::unique_ptr<PostedMessage> post_receive(const Envelope&, int peer, void*, std::int64_t) override {
    return std::make_unique<Arriving>(peer, look);
  }
  void close(const std::string&) override {}
  const std::function<void()>& look;
};

}  // namespace

TEST_CASE(
    "while a rank waits, its slot says for which rank of the run and in what; then for nobody, with a sign more") {
  Options options;
  options.grid = Grid().dp(3).tp(2);
  options.set_up.groups = {{"odd", {5, 1, 3}}};
  Progress store(options.grid.size());
  ProgressSlot& slot = store.slot(3);
  std::vector<std::tuple<CollectiveKind, int>> seen;
  const std::function<void()> look = [&] { seen.emplace_back(slot.waits_in.load(), slot.waits_for.load()); };
  RankGroups groups(RunGroups(options), options.set_up.link, 3, slot,
                    [&](const std::string&, const Group&, int) -> std::unique_ptr<Backend> {
                      return std::make_unique<ArrivingBackend>(look);
                    });
  std::vector<std::string> sent;
  groups.on_sent = [&](const RecordedMove& message) {
    sent.push_back(std::to_string(message.from) + " to " + std::to_string(message.to) + " in " + message.group + ": " +
                   message.collective + " of " + message.type + ", " + std::to_string(message.bytes) + ", call " +
                   std::to_string(message.call));
  };
  CHECK(slot.waits_for == ProgressSlot::kNobody);
  float numbers[4] = {};
  Communicator& odd = groups.communicator("odd");  // in which it is number 2
  using Seen = std::tuple<CollectiveKind, int>;
  const auto signs = [&] { return slot.signs.load(); };
  const std::uint64_t before = signs();
  odd.recv(numbers, 3, 0);
  odd.send(numbers, 2, 1);
  CHECK(signs() == before + 2);
  CHECK(slot.waits_for == ProgressSlot::kNobody);
  odd.broadcast(numbers, 4, 2);
  REQUIRE(seen.size() == 4);
  CHECK((seen[0] == Seen{CollectiveKind::recv, 5}));
  CHECK((seen[1] == Seen{CollectiveKind::send, 1}));
  CHECK((seen[2] == Seen{CollectiveKind::broadcast, 5}));
  CHECK((seen[3] == Seen{CollectiveKind::broadcast, 1}));
  CHECK(slot.waits_for == ProgressSlot::kNobody);
  REQUIRE(sent.size() == 3);
  CHECK(sent[0] == "3 to 1 in odd: send of float32, 8, call 1");
  CHECK(sent[1] == "3 to 5 in odd: broadcast of float32, 16, call 2");
  CHECK(sent[2] == "3 to 1 in odd: broadcast of float32, 16, call 2");
}

TEST_CASE("all groups of a rank share its slow link, one way in and one way out") {
  Options options;
  options.grid = Grid().dp(2).tp(2);
  options.set_up.link = LinkSpeed{1e-4, 0};  // 10,000 bytes take 100 ms
  Progress store(options.grid.size());
  const std::function<void()> look = [] {};
  RankGroups groups(RunGroups(options), options.set_up.link, 0, store.slot(0),
                    [&](const std::string&, const Group&, int) -> std::unique_ptr<Backend> {
                      return std::make_unique<ArrivingBackend>(look);
                    });
  const std::vector<float> out(2500);
  std::vector<float> in(2500);
  const auto began = std::chrono::steady_clock::now();
  Transfer first = groups.communicator("dp").isend(out.data(), 2500, 1);
  Transfer second = groups.communicator("tp").isend(out.data(), 2500, 1);
  first.wait();
  second.wait();
  CHECK(std::chrono::steady_clock::now() - began >= std::chrono::milliseconds(200));
}
