#include "sim/lesson_23/link_use.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/lesson_23/link_table.hpp"
#include "sim/world/host_link.hpp"
#include "sim/world/private_network.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/names.hpp"
#include "src/train/models.hpp"
#include "tests/layout/expect_usage_error.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

std::vector<Plan> plans_on(const Grid& grid, const LayoutOptions& options = {}) {
  const Layout layout = plan_layout(proof_of_concept_parameters(), grid, options);
  std::vector<Plan> plans;
  for (int rank = 0; rank < grid.size(); ++rank) plans.push_back(muon_plan(layout, grid.place(rank), MuonSettings()));
  return plans;
}

std::int64_t sent_in(const std::vector<Plan>& plans, const std::string& group, int host, const HostOfRank& host_of) {
  std::int64_t sum = 0;
  for (std::size_t rank = 0; rank < plans.size(); ++rank)
    if (host_of[rank] == host) sum += ledger_of(plans[rank]).total(group).bytes_sent;
  return sum;
}

}  // namespace

TEST_CASE("where one kind of groups crosses the link and the other does not, the link has its bytes and no others") {
  const std::vector<Plan> plans = plans_on(Grid().dp(2).tp(2));
  const HostOfRank inside = {0, 0, 1, 1}, across = {0, 1, 0, 1}, one = {0, 0, 0, 0};
  for (const int host : {0, 1}) {
    CHECK(link_use(plans, inside).total().bytes_out[host] == sent_in(plans, "dp", host, inside));
    CHECK(link_use(plans, across).total().bytes_out[host] == sent_in(plans, "tp", host, across));
  }
  CHECK(link_use(plans, one).phases.empty());
  std::vector<std::string> names;
  for (const PhaseOnLink& phase : link_use(plans, inside).phases) names.emplace_back(phase.phase);
  CHECK((names == std::vector<std::string>{"reduce-scatter of gradients", "DP gather", "all-gather of weights"}));
  for (const PhaseOnLink& phase : link_use(plans, inside).phases) {
    CHECK(phase.waits == 1);
    CHECK(phase.messages == 4);
  }
  // Four matrices are cut; a rank gathers those of which it owns an element.
  const LinkUse of_tp = link_use(plans, across);
  REQUIRE(of_tp.phases.size() == 1);
  CHECK(of_tp.phases[0].waits == 3);
}

TEST_CASE("of groups that have ranks on both hosts, what goes from host to host is counted and the rest is not") {
  // dp 3 × tp 1, ranks 0 and 1 on one host. With an owner for each matrix, shards differ in size.
  LayoutOptions options;
  options.ownership = parse_ownership("matrices");
  const std::vector<Plan> plans = plans_on(Grid().dp(3), options);
  const HostOfRank host_of = {0, 0, 1};
  std::map<Phase, PhaseOnLink> phases;
  for (const PhaseOnLink& phase : link_use(plans, host_of).phases) phases.emplace(phase.phase, phase);
  std::vector<Index> own;
  for (const Plan& plan : plans)
    for (const Operation& operation : plan.operations)
      if (const Call* call = std::get_if<Call>(&operation); call != nullptr && own.size() < plans.size())
        if (call->kind == CollectiveKind::reduce_scatter) own.push_back(call->elements_out);
  REQUIRE(own.size() == 3);
  REQUIRE(own[0] + own[1] != 2 * own[2]);
  const PhaseOnLink& reduce = phases.at(phases::reduce_gradients);
  CHECK(reduce.bytes_out[0] == 2 * 4 * own[2]);
  CHECK(reduce.bytes_out[1] == 4 * (own[0] + own[1]));
  CHECK(reduce.messages == 4);
  const PhaseOnLink& gather = phases.at(phases::gather_weights);
  CHECK(gather.bytes_out[0] == 4 * (own[0] + own[1]));
  CHECK(gather.bytes_out[1] == 2 * 4 * own[2]);
}

TEST_CASE("ranks are shared out by halves, in rank order or by tp; what has no halves is refused") {
  CHECK((place_on_hosts(Grid().dp(2).tp(2), "tp-inside") == HostOfRank{0, 0, 1, 1}));
  CHECK((place_on_hosts(Grid().dp(2).tp(2), "tp-across") == HostOfRank{0, 1, 0, 1}));
  CHECK((place_on_hosts(Grid().dp(1).tp(4), "tp-across") == HostOfRank{0, 0, 1, 1}));
  CHECK((place_on_hosts(Grid().dp(6), "tp-inside") == HostOfRank{0, 0, 0, 1, 1, 1}));
  const auto refusal = [](const Grid& grid, const std::string& placement) {
    return usage_error([&] { place_on_hosts(grid, placement); });
  };
  const std::string halves = ", and two hosts can't have one half each; try --dp 2 --tp 2";
  CHECK(refusal(Grid().dp(3), "tp-inside") == "dp 3 × tp 1 has 3 ranks with --placement tp-inside" + halves);
  CHECK(refusal(Grid().dp(2), "tp-across") == "dp 2 × tp 1 has 1 in each TP group with --placement tp-across" + halves);
  CHECK(refusal(Grid().dp(2), "x") == "--placement x is not known; it takes tp-inside or tp-across");
  CHECK(refusal(Grid().dp(2).pp(2), "tp-inside") ==
        "--pp 2 has no place on two hosts, which share dp and tp; try lesson 09");
}

TEST_CASE("the least time is one delay for each call that crosses, and the bytes of the host that sends more") {
  PhaseOnLink phase{"x"};
  phase.bytes_out[0] = 1000;
  phase.bytes_out[1] = 125000;
  phase.waits = 3;
  CHECK(least_ms(phase, {1e6, 0}) == doctest::Approx(1000));
  CHECK(least_ms(phase, {0, 10}) == doctest::Approx(30));
  CHECK(least_ms(phase, {1e9, 10}) == doctest::Approx(31));
  std::swap(phase.bytes_out[0], phase.bytes_out[1]);
  CHECK(least_ms(phase, {1e9, 10}) == doctest::Approx(31));
}

TEST_CASE("--link takes a rate, a delay or both, and refuses all else in one sentence") {
  CHECK(parse_link("1gbit").bits_per_second == 1e9);
  CHECK(parse_link("1gbit").delay_ms == 0);
  CHECK(parse_link("10ms").delay_ms == 10);
  CHECK(parse_link("2.5mbit,0.5ms").bits_per_second == 2.5e6);
  CHECK(parse_link("3ms,8kbit").bits_per_second == 8e3);
  for (const char* text :
       {"", ",", "1", "gbit", "1gbit,", "-1ms", "0ms", "1e99gbit", "nan ms", "1 gbit", "1gbits", "infms"})
    CHECK(usage_error([&] { parse_link(text); }) ==
          "--link " + as_typed(text) +
              " is not a link; it takes a rate, a delay, or both, for example 1gbit, 10ms or 100mbit,2ms");
}

TEST_CASE("the table has a line for each phase, or for each way to do the step") {
  LinkUse use, other;
  PhaseOnLink first{"DP gather"}, second{"all-gather of weights"};
  first.bytes_out[0] = 1000, first.bytes_out[1] = 2000, first.messages = 2, first.waits = 1;
  second.bytes_out[0] = 5000, second.bytes_out[1] = 3000, second.messages = 4, second.waits = 2;
  use.phases = {first, second};
  other.phases = {second};
  CHECK(use.total().messages == 6);
  const std::vector<NamedLink> links = {{"10 ms", {0, 10}}, {"1 mbit", {1e6, 0.5}}};
  CHECK(link_table("a step", {{"one bucket", use}, {"whole", other}}, links, true) ==
        "a step                   bytes out of a host  waits    10 ms   1 mbit\n"
        "one bucket\n"
        "  DP gather                          2,000 B      1  10.0 ms  16.5 ms\n"
        "  all-gather of weights              5,000 B      2  20.0 ms  41.0 ms\n"
        "  all                                6,000 B      3  30.0 ms  49.5 ms\n"
        "whole\n"
        "  all-gather of weights              5,000 B      2  20.0 ms  41.0 ms\n"
        "  all                                5,000 B      2  20.0 ms  41.0 ms");
  CHECK(link_table("a step", {{"one bucket", use}, {"whole", other}}, {links[0]}, false) ==
        "a step      bytes out of a host  waits    10 ms\n"
        "one bucket              6,000 B      3  30.0 ms\n"
        "whole                   5,000 B      2  20.0 ms");
}

TEST_CASE("two hosts in a private network: joined by a cable that the kernel counts, and that can be pulled out") {
  const PrivateNetwork network(2);
  if (!network.exists()) {
    MESSAGE("left out: this system lets a process have no two networks with a cable between them");
    return;
  }
  CHECK(!link_bytes());  // this process is in neither
  REQUIRE(network.enter(1));
  const std::optional<LinkBytes> before = link_bytes();
  REQUIRE(before);
  CHECK(host_address(1) == "10.77.0.2");
  // One way: a thousand bytes, a hundred times, to a port of the other host where nobody listens.
  const int channel = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(4711);
  inet_pton(AF_INET, host_address(0).c_str(), &to.sin_addr);
  const std::string bytes(1000, 'x');
  const std::int64_t wanted = before->sent + 50000;
  std::optional<LinkBytes> after = before;
  // What is sent before the hosts have met is lost, and that may take a while on a busy machine: up to ten seconds
  // here.
  for (int turn = 0; turn < 100000 && after->sent < wanted; ++turn) {
    sendto(channel, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    if (turn % 10 == 9) usleep(1000);
    after = link_bytes();
  }
  close(channel);
  CHECK(after->sent >= wanted);
  CHECK(after->received - before->received < (after->sent - before->sent) / 2);
  CHECK(cut_host_link());
}
