#include "lessons/lesson_23_two_hosts/link_table.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/ranks/private_network.hpp"
#include "src/text/names.hpp"
#include "tests/layout/expect_usage_error.hpp"
#include "tests/near.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

TEST_CASE("the least time is one delay for each call that crosses, and the bytes of the host that sends more") {
  for (const bool b_sends_more : {false, true}) {
    PhaseOnLink phase{"x", {125000, 1000}, 3};
    if (b_sends_more) std::swap(phase.bytes_out[0], phase.bytes_out[1]);
    CHECK(least_ms(phase, {"", 1e6, 0}) == near(1000));
    CHECK(least_ms(phase, {"", 0, 10}) == near(30));
    CHECK(least_ms(phase, {"", 1e9, 10}) == near(31));
  }
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

TEST_CASE("the table has a line for each phase that crosses, or for each way to do the step") {
  LinkUse use, other;
  use.of("DP gather") = {"DP gather", {1000, 2000}, 1};
  use.of("momentum");
  use.of("all-gather of weights") = other.of("all-gather of weights") = {"all-gather of weights", {5000, 3000}, 2};
  const std::vector<Link> links = {{"10 ms", 0, 10}, {"1 mbit", 1e6, 0.5}};
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
