// A link that is made slow: its arithmetic by hand, what can't be a link, and the same bytes over it, but later.
#include "sim/transport/slow_link.hpp"

#include <doctest/doctest.h>
#include <time.h>

#include <chrono>
#include <limits>
#include <memory>
#include <vector>

#include "sim/fibers/fibers.hpp"
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
  Exchanger* exchanger() override { return asked_for; }
  std::optional<std::int64_t> kernel_bytes_sent() const override { return 7; }
  std::int64_t header_bytes_sent() const override { return 9; }
  void close(const std::string& reason) override { inner.close(reason); }
  Backend& inner;
  static Exchanger* asked_for;  // never called
};
Exchanger* Forwarding::asked_for = nullptr;

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

TEST_CASE("over a slow link: what a rank sends and what it receives go different ways, and all its groups share them") {
  const std::int64_t busy = 30000000;  // bytes, which keep a direction busy for 300 s at 10⁻⁴ GB/s
  for (const bool out_is_busy : {true, false}) {
    std::vector<std::shared_ptr<RankLink>> links;
    const std::int64_t began = fiber::clock_ns();
    for (int rank = 0; rank < 2; ++rank) {
      links.push_back(std::make_shared<RankLink>(LinkSpeed{1e-4, 0}));
      LinkDirection& direction = (rank == 0) == out_is_busy ? links.back()->out : links.back()->in;
      direction.put(began, busy);
    }
    const auto wrapper = [&](int rank, Backend& inner) {
      return over_slow_link(std::make_unique<Forwarding>(inner), links[static_cast<std::size_t>(rank)]);
    };
    // Where rank 0's way out and rank 1's way in are busy, rank 1 can still send to rank 0, and the other way round: 4
    // bytes in 40 µs. A second group's are behind the first one's.
    const int sender = out_is_busy ? 1 : 0;
    const auto pass = [&](Communicator& c) {
      float number = 5;
      return error_of([&] { c.rank() == sender ? c.send(&number, 1, 1 - sender) : c.recv(&number, 1, sender); });
    };
    CHECK(joined(on_fibers(2, pass, wrapper)) == "");
    CHECK(fiber::clock_ns() - began == 40000);
    CHECK(joined(on_fibers(2, pass, wrapper)) == "");
    CHECK(fiber::clock_ns() - began == 80000);
  }
}

TEST_CASE(
    "over a slow link: a sender is done when its message has left, whatever the latency; who waits says for whom") {
  const auto wrapper = [](int rank, Backend& inner) -> std::unique_ptr<Backend> {
    const LinkSpeed link{rank == 0 ? 1e-3 : 1e6, rank == 0 ? 700000.0 : 0.0};  // 0.7 s
    return over_slow_link(std::make_unique<Forwarding>(inner), std::make_shared<RankLink>(link));
  };
  const auto run = [&](Communicator& c) -> std::string {
    std::vector<float> numbers(5000, 5);  // 20,000 bytes: 20 ms
    const Envelope send{CollectiveKind::send, ElementType::float32, 0, 0},
        recv{CollectiveKind::recv, ElementType::float32, 0, 0};
    if (c.rank() == 1) {
      c.backend().post_receive(recv, 0, numbers.data(), 20000)->wait([](int) {});
      return "";
    }
    std::vector<int> told;
    const std::int64_t began = fiber::clock_ns();
    const auto message = c.backend().post_send(send, 1, numbers.data(), 20000);
    message->wait([&](int peer) { told.push_back(peer); });
    if (fiber::clock_ns() - began != 20000000) return "it did not leave after 20 ms";
    return told.empty() || told.back() != 1 ? "it does not say for whom it waits" : "";
  };
  CHECK(joined(on_fibers(2, run, wrapper)) == "");
}

TEST_CASE(
    "over a slow link: transfers and collectives equal the serial oracle, and what is asked goes to the backend") {
  for (int size = 1; size <= 4; ++size) {
    RandomTransfers settings;
    settings.seed = static_cast<std::uint64_t>(size);
    settings.largest = 3000;
    settings.messages = 8 * size;
    settings.rounds = 3;
    CHECK(joined(on_fibers(
              size, [&](Communicator& c) { return make_random_transfers(c, settings); }, over({0.5, 50}))) == "");
  }
  const auto asked = [](Communicator& c) -> std::string {
    if (c.backend().kernel_bytes_sent() != 7) return "no traffic";
    if (c.backend().header_bytes_sent() != 9) return "no headers";
    Forwarding::asked_for = reinterpret_cast<Exchanger*>(&c);
    const bool same = c.backend().exchanger() == Forwarding::asked_for;
    Forwarding::asked_for = nullptr;
    if (!same) return "another exchanger";
    c.backend().close("it has been closed");
    return error_of([&] { c.barrier(); }) == "it has been closed" ? "" : "it was not closed";
  };
  CHECK(joined(on_fibers(2, asked, over({1, 1}))) == "");
}

TEST_CASE("over a slow link: a wait returns when its time has come, and time passes only for those who wait") {
  // 1 MB at 0.02 GB/s are 50 ms, and 20 ms from end to end.
  const auto whole = [](Communicator& c) -> std::string {
    const Flat out(250000, 2.0f);
    Flat in(250000);
    const std::int64_t began = fiber::clock_ns();
    const auto passed_ms = [&] { return static_cast<double>(fiber::clock_ns() - began) / 1e6; };
    Transfer sending = c.isend(out.data(), 250000, 1 - c.rank());
    Transfer receiving = c.irecv(in.data(), 250000, 1 - c.rank());
    if (passed_ms() != 0) return "posting takes time";
    sending.wait();
    if (passed_ms() != 50) return "it was not sent after 50 ms";
    receiving.wait();
    if (passed_ms() != 70) return "it did not come after 70 ms";
    if (in != out) return "other values";
    c.barrier();  // empty messages, with the latency of any other
    return passed_ms() != 90 ? "an empty message came without its latency" : "";
  };
  CHECK(joined(on_fibers(2, whole, over({0.02, 20000}))) == "");
}

#if defined(__linux__)
TEST_CASE(
    "over a slow link: between threads, where time is real, no wait returns early, and it costs no processor time") {
  const auto whole = [](Communicator& c) -> std::string {
    const auto slow =
        over_slow_link(std::make_unique<Forwarding>(c.backend()), std::make_shared<RankLink>(LinkSpeed{0.02, 20000}));
    const Envelope send{CollectiveKind::send, ElementType::float32, 0, 0},
        recv{CollectiveKind::recv, ElementType::float32, 0, 0};
    const Flat out(250000, 2.0f);
    Flat in(250000);
    const auto began = std::chrono::steady_clock::now();
    const double used = thread_seconds();
    const auto receiving = slow->post_receive(recv, 1 - c.rank(), in.data(), 1000000);
    const auto sending = slow->post_send(send, 1 - c.rank(), out.data(), 1000000);
    sending->wait([](int) {});
    receiving->wait([](int) {});
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - began;
    if (passed.count() < 0.07) return "it came too early";
    if (thread_seconds() - used > 0.035) return "it burned processor time";
    return in == out ? "" : "other values";
  };
  CHECK(joined(on_gloo_threads(2, whole)) == "");
}
#endif
