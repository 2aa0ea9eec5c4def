// A link that is made slow: its arithmetic by hand, what can't be a link, and the same bytes over it, but later.
#include "sim/transport/slow_link.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <chrono>
#include <limits>

#include "src/errors.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/comm/rank_runners.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using namespace muonwalk::testing;

namespace {

// What another backend does.
struct Forwarding : Backend {
  explicit Forwarding(Backend& backend) : inner(backend) {}
  std::unique_ptr<PostedMessage> post_send(const Envelope& envelope, int peer, const void* data,
                                           std::int64_t bytes) override {
    return inner.post_send(envelope, peer, data, bytes);
  }
  std::unique_ptr<PostedMessage> post_receive(const Envelope& envelope, int peer, void* data,
                                              std::int64_t bytes) override {
    return inner.post_receive(envelope, peer, data, bytes);
  }
  KernelTraffic kernel_traffic() const override { return {true, 7, 8}; }
  std::int64_t header_bytes_sent() const override { return 9; }
  void close(const std::string& reason) override { inner.close(reason); }
  Backend& inner;
};

Wrapper over(const LinkSpeed& link) {
  return [link](int, Backend& inner) {
    return over_slow_link(std::make_unique<Forwarding>(inner), std::make_shared<RankLink>(link));
  };
}

std::string refusal(const std::string& text) {
  try {
    parse_link_speed("--link", text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

double thread_seconds() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace

TEST_CASE("--link: a bandwidth and a latency; anything else is refused in a sentence that says what works") {
  const LinkSpeed link = parse_link_speed("--link", "0.05,200");
  CHECK(link.gigabytes_per_second == 0.05);
  CHECK(link.latency_us == 200);
  CHECK(link_speed_text(link) == "0.05 GB/s, 200 µs");
  CHECK(link_speed_text(parse_link_speed("--link", "1e2,0")) == "100 GB/s, 0 µs");
  for (const char* text : {"", ",", "1", "1,", ",1", "a,b", "1,2,3", "1,2x", "1x,2", "nan,1", "1,nan", "inf,1", "1,inf",
                           " 1,2", "1, 2", "1;2", "fast"}) {
    CAPTURE(text);
    CHECK(refusal(text).find(" is not a link; it takes GB/s and microseconds, for example --link 0.05,200") !=
          std::string::npos);
  }
  for (const char* text : {"0,1", "-1,1", "0.00001,1", "1e7,1"}) {
    CAPTURE(text);
    CHECK(refusal(text).find("asks for a bandwidth of") != std::string::npos);
  }
  for (const char* text : {"1,-1", "1,1e7"}) {
    CAPTURE(text);
    CHECK(refusal(text).find("asks for a latency of") != std::string::npos);
  }
  CHECK(refusal("0.00009,1") ==
        "--link 0.00009,1 asks for a bandwidth of 9e-05 GB/s; it takes 0.0001 to 1e+06, for example --link 0.05,200");
  CHECK(refusal("1,1000001") ==
        "--link 1,1000001 asks for a latency of 1e+06 µs; it takes 0 to 1e+06, for example --link 0.05,200");
  for (const char* text : {"0.0001,0", "1000000,1000000"}) {
    CAPTURE(text);
    CHECK(refusal(text).empty());
  }
}

TEST_CASE("a direction of a link: messages leave one after the other, and latencies overlap") {
  LinkDirection link({1, 5});  // a byte per nanosecond, and 5,000 ns
  const auto times = [&](std::int64_t now, std::int64_t bytes) {
    const LinkDirection::Times put = link.put(now, bytes);
    return std::make_pair(put.left_ns, put.arrived_ns);
  };
  CHECK(times(1000, 300) == std::make_pair<std::int64_t, std::int64_t>(1300, 6300));
  CHECK(times(1000, 200) == std::make_pair<std::int64_t, std::int64_t>(1500, 6500));  // behind the first
  CHECK(times(1400, 0) == std::make_pair<std::int64_t, std::int64_t>(1500, 6500));    // empty, but not past it
  CHECK(times(9000, 100) == std::make_pair<std::int64_t, std::int64_t>(9100, 14100));
}

TEST_CASE(
    "over a slow link: transfers and collectives equal the serial oracle, and what is asked goes to the backend") {
  for (int size = 1; size <= 4; ++size) {
    RandomTransfers settings;
    settings.seed = static_cast<std::uint64_t>(size);
    settings.largest = 3000;
    settings.messages = 8 * size;
    settings.rounds = 3;
    CHECK(joined(on_memory_threads(
              size, [&](Communicator& c) { return make_random_transfers(c, settings); }, patient, over({0.5, 50}))) ==
          "");
  }
  const auto asked = [](Communicator& c) -> std::string {
    if (!c.backend().kernel_traffic().known || c.backend().kernel_traffic().bytes_received != 8) return "no traffic";
    return c.backend().header_bytes_sent() == 9 ? "" : "no headers";
  };
  CHECK(joined(on_memory_threads(2, asked, patient, over({1, 1}))) == "");
}

TEST_CASE("over a slow link: no wait returns before its time, and it costs no processor time") {
  // 1 MB at 0.02 GB/s are 50 ms, and 20 ms from end to end.
  const auto whole = [](Communicator& c) -> std::string {
    const Flat out(250000, 2.0f);
    Flat in(250000);
    const auto began = std::chrono::steady_clock::now();
    const auto passed = [&] {
      return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - began).count();
    };
    const double used = thread_seconds();
    Transfer sending = c.isend(out.data(), 250000, 1 - c.rank());
    Transfer receiving = c.irecv(in.data(), 250000, 1 - c.rank());
    sending.wait();
    if (passed() < 50) return "it was sent too early";
    receiving.wait();
    if (passed() < 70) return "it came too early";
    if (in != out) return "other values";
    if (thread_seconds() - used > 0.035) return "it burned processor time";
    // Behind it on the same link: nothing is lost of what was late already.
    c.barrier();
    return passed() < 90 ? "an empty message came without its latency" : "";
  };
  CHECK(joined(on_memory_threads(2, whole, patient, over({0.02, 20000}))) == "");
}
