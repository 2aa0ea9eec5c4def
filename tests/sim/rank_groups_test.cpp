// What a rank says of all its groups together. The backends are made up here: they move nothing and say what they are
// told to say.
#include "sim/world/rank_groups.hpp"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// What one group's backend has to say.
struct GroupAccount {
  KernelTraffic kernel;
  std::int64_t headers = 0;
};

struct TellingBackend : Backend {
  explicit TellingBackend(const GroupAccount& account) : says(account) {}
  std::unique_ptr<PostedMessage> post_send(const Envelope&, int, const void*, std::int64_t) override { return nullptr; }
  std::unique_ptr<PostedMessage> post_receive(const Envelope&, int, void*, std::int64_t) override { return nullptr; }
  KernelTraffic kernel_traffic() const override { return says.kernel; }
  std::int64_t header_bytes_sent() const override { return says.headers; }
  void close(const std::string&) override {}
  GroupAccount says;
};

}  // namespace

TEST_CASE("the kernel's counters of a rank are the sums over its groups, and known only where every group's are") {
  Options options;
  options.grid = Grid().dp(2).tp(3).pp(2);
  options.groups = {{"pair", {0, 7}}, {"nobody here", {1, 2}}};
  const std::vector<std::string> joined = {"dp", "tp", "pp", "pair"};  // rank 7 is in all of them
  ProgressBoard board(options.grid.size());
  for (unsigned subset = 0; subset < 1u << joined.size(); ++subset) {
    CAPTURE(subset);
    std::map<std::string, GroupAccount> accounts;
    KernelTraffic sum{true, 0, 0};
    std::int64_t headers = 0;
    for (std::size_t g = 0; g < joined.size(); ++g) {
      const bool known = (subset >> g & 1u) != 0;
      const std::int64_t digit = std::int64_t{1} << (4 * g);
      accounts[joined[g]] = {{known, 2 * digit, 3 * digit}, 5 * digit};
      sum.known = sum.known && known;
      sum.bytes_sent += 2 * digit;
      sum.bytes_received += 3 * digit;
      headers += 5 * digit;
    }
    const RankGroups groups(options, 7, board.slot(7),
                            [&](const std::string&, const Group& group, int) -> std::unique_ptr<Backend> {
                              return std::make_unique<TellingBackend>(accounts.at(group.name));
                            });
    const KernelTraffic all = groups.kernel_traffic();
    CHECK(all.known == sum.known);
    CHECK(all.bytes_sent == sum.bytes_sent);
    CHECK(all.bytes_received == sum.bytes_received);
    CHECK(groups.header_bytes_sent() == headers);
  }
}
