// Lesson 23 as a program: with two networks and without, and with a host that is gone.

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/ranks/private_network.hpp"
#include "src/optim/full_step.hpp"
#include "src/train/models.hpp"
#include "tests/ranks/expect_refused.hpp"

using namespace muonwalk;
using namespace muonwalk::testing;
using muonwalk::sim::PrivateNetwork;

namespace {

constexpr double kLimitSeconds = 120;

std::string lesson() {
  char self[4096] = {};
  const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  const std::string path(self, length > 0 ? static_cast<std::size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1) + "lesson_23_two_hosts";
}

Outcome with(std::vector<std::string> options) {
  options.insert(options.begin(), lesson());
  return run_program(options, kLimitSeconds);
}

// The bytes out of a host in the line `line` of the table whose heading begins with `table`.
std::int64_t bytes_of(const std::string& screen, const std::string& table, const std::string& line) {
  const std::size_t heading = screen.find('\n' + table), begin = screen.find('\n' + line + "  ", heading);
  REQUIRE(heading != std::string::npos);
  REQUIRE(begin != std::string::npos);
  std::string text = screen.substr(begin + 1 + line.size(), screen.find('B', begin) - begin - line.size());
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  return std::stoll(text);
}

// What the ranks of a host send in one kind of groups, by the ledgers of their plans.
std::int64_t sent_in(const Layout& layout, const Grid& grid, const std::string& group, const std::vector<int>& ranks) {
  std::int64_t sum = 0;
  for (const int rank : ranks)
    sum += ledger_of(muon_plan(layout, grid.place(rank), MuonSettings())).total(group).bytes_sent;
  return sum;
}

bool has(const Outcome& outcome, const std::string& words) { return outcome.err.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("two addresses of a loopback stand in for two networks: the same screen, and a line that says so") {
  const Outcome usual = with({});
  const Outcome shared = with({"--network", "shared"});
  CHECK_MESSAGE(usual.exit_code == 0, end_text(usual));
  CHECK_MESSAGE(shared.exit_code == 0, end_text(shared));
  CHECK(usual.out == shared.out);
  CHECK(has(shared, "the two hosts of this run are two addresses of one loopback"));
  CHECK(!has(shared, "counted by the kernel"));
  const bool two_networks = PrivateNetwork(2).exists();
  CHECK(has(usual, "two addresses of one loopback") == !two_networks);
  for (const char* host : {"host A: ", "host B: "}) CHECK(has(usual, host) == two_networks);
}

TEST_CASE("the kernel counts the bytes of the groups that cross, whichever these are") {
  if (!PrivateNetwork(2).exists()) {
    MESSAGE("left out: this system lets a process have no two networks with a cable between them");
    return;
  }
  // Five steps: what the table of a step says, five times.
  CHECK(has(with({}), "host A: planned for the other host 360,960 B"));
  const Outcome across = with({"--placement", "tp-across"});
  CHECK_MESSAGE(across.exit_code == 0, across.out);
  CHECK(has(across, "host A: planned for the other host 191,840 B"));
  CHECK(across.out.find(" 38,368 B ") != std::string::npos);
}

TEST_CASE("a host that vanishes ends the run with a sentence, and nothing is left") {
  Program program({lesson(), "--vanish", "--timeout", "1"});
  const Outcome outcome = program.wait(kLimitSeconds);
  CHECK_MESSAGE(outcome.exit_code == 3, end_text(outcome));
  CHECK(has(outcome, "in step 'host B vanishes'"));
  CHECK((has(outcome, "rank 2") || has(outcome, "ranks 2–3") || has(outcome, "rank 3")));
  CHECK(processes_of_session(program.pid()).empty());
}

TEST_CASE(
    "the cable has the bytes of the groups that cross it, by the ledgers, and of a group that is on both, its part") {
  const struct {
    std::vector<std::string> options;
    Grid grid;
    std::string group;
    std::vector<int> host_a, host_b;
    std::int64_t of, peers;  // peers that a rank has in its group, and how many of them are on the other host
  } rows[] = {{{"--dp", "2", "--tp", "2"}, Grid().dp(2).tp(2), "dp", {0, 1}, {2, 3}, 1, 1},
              {{"--dp", "2", "--tp", "2", "--placement", "tp-across"}, Grid().dp(2).tp(2), "tp", {0, 2}, {1, 3}, 1, 1},
              {{"--dp", "6", "--tp", "1"}, Grid().dp(6), "dp", {0, 1, 2}, {3, 4, 5}, 5, 3},
              {{"--dp", "1", "--tp", "4", "--placement", "tp-across"}, Grid().tp(4), "tp", {0, 1}, {2, 3}, 3, 2}};
  for (const auto& row : rows) {
    CAPTURE(row.grid.text());
    const Outcome outcome = with(row.options);
    CHECK_MESSAGE(outcome.exit_code == 0, end_text(outcome));
    const auto expected = [&](const std::vector<Parameter>& parameters) {
      const Layout layout = plan_layout(parameters, row.grid);
      return row.peers *
             std::max(sent_in(layout, row.grid, row.group, row.host_a),
                      sent_in(layout, row.grid, row.group, row.host_b)) /
             row.of;
    };
    CHECK(bytes_of(outcome.out, "each of these steps", "  all") == expected(small_parameters()));
    CHECK(bytes_of(outcome.out, "a step at real sizes", "  all") == expected(proof_of_concept_parameters()));
  }
}

TEST_CASE("where owners hold whole matrices, a rank sends each rank of the other host that one's part") {
  LayoutOptions options;
  options.ownership = parse_ownership("matrices");
  const Layout layout = plan_layout(proof_of_concept_parameters(), Grid().dp(4), options);
  Index all = 0;
  for (int dp = 0; dp < 4; ++dp) all += layout.shard_elements(dp);
  REQUIRE(layout.shard_elements(0) + layout.shard_elements(1) != all / 2);
  // Scattered: two ranks send to each of the two others; gathered: each of two sends to two.
  CHECK(bytes_of(with({"--dp", "4", "--tp", "1"}).out, "the same, laid out otherwise",
                 "each matrix has one owner in dp") == 2 * 4 * all);
}

TEST_CASE("ranks are shared out by halves, in rank order or by tp, and what has no halves is refused in one sentence") {
  for (const auto& [placement, line] :
       {std::pair{"tp-inside", "ranks 0–1  dp 0     on host A\n"}, {"tp-across", "ranks 1, 3  tp 1    on host B\n"}})
    CHECK(with({"--placement", placement}).out.find(line) != std::string::npos);
  const std::string halves = ", and two hosts can't have one half each; try --dp 2 --tp 2";
  expect_refused({lesson()},
                 {{{"--dp", "3", "--tp", "1"}, "dp 3 × tp 1 has 3 ranks with --placement tp-inside" + halves},
                  {{"--dp", "2", "--tp", "1", "--placement", "tp-across"},
                   "dp 2 × tp 1 has 1 in each TP group with --placement tp-across" + halves},
                  {{"--placement", "x"}, "--placement x is not known; it takes tp-inside or tp-across"},
                  {{"--pp", "2"}, "--pp 2 has no place on two hosts"},
                  {{"--link", "fast"}, "--link fast is not a link"}});
}
