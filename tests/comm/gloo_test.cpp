#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "sim/transport/secret.hpp"
#include "sim/transport/tcp_sockets.hpp"
#include "src/errors.hpp"
#include "tests/comm/random_calls.hpp"
#include "tests/comm/rank_runners.hpp"

using namespace muonwalk;
using namespace muonwalk::testing;
using std::chrono::milliseconds;

TEST_CASE("address_text: an address of either kind with its port, and nothing of what is neither or cut") {
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  four.sin_port = htons(1234);
  four.sin_addr.s_addr = htonl(0x7f000001);
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(4660);  // 0x1234: the two bytes differ
  six.sin6_addr = in6addr_loopback;
  CHECK(sim::address_text(&four, sizeof four) == "127.0.0.1:1234");
  CHECK(sim::address_text(&six, sizeof six) == "[::1]:4660");
  CHECK(sim::address_text(&six, sizeof six - 1) == "");
  CHECK(sim::address_text(&four, sizeof four - 1) == "");
  four.sin_family = AF_UNIX;
  CHECK(sim::address_text(&four, sizeof four) == "");
}

TEST_CASE("connects_to: the later of two addresses connects, by address and then by port, of either kind") {
  const auto four = [](std::uint32_t address, int port) {
    sockaddr_in of = {};
    of.sin_family = AF_INET;
    of.sin_addr.s_addr = htonl(address);
    of.sin_port = static_cast<in_port_t>(port);
    return std::vector<char>(reinterpret_cast<const char*>(&of), reinterpret_cast<const char*>(&of + 1));
  };
  const auto six = [](const char* address, int port) {
    sockaddr_in6 of = {};
    of.sin6_family = AF_INET6;
    REQUIRE(inet_pton(AF_INET6, address, &of.sin6_addr) == 1);
    of.sin6_port = static_cast<in_port_t>(port);
    return std::vector<char>(reinterpret_cast<const char*>(&of), reinterpret_cast<const char*>(&of + 1));
  };
  const auto only_first = [](const std::vector<char>& first, const std::vector<char>& second) {
    return sim::connects_to(first, second) && !sim::connects_to(second, first);
  };
  CHECK(only_first(four(0x0a000002, 1), four(0x0a000001, 2)));
  CHECK(only_first(four(0x0a000001, 2), four(0x0a000001, 1)));
  CHECK(only_first(four(0x80000001, 1), four(0x0a000001, 1)));  // bytes without a sign
  CHECK(only_first(six("fd00::2", 1), six("fd00::1", 2)));      // the last byte of the address, against the port
  CHECK(only_first(six("fe80::1", 1), six("fd00::ffff", 2)));
  CHECK(only_first(six("::1", 2), six("::1", 1)));
  CHECK(!sim::connects_to(six("::1", 7), six("::1", 7)));
}

TEST_CASE("collectives over Gloo at an IPv6 address equal the naive reference") {
  const int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool there = probe >= 0 && bind(probe, reinterpret_cast<sockaddr*>(&loopback), sizeof loopback) == 0;
  if (probe >= 0) close(probe);
  if (!there) {
    MESSAGE("this system has no ::1, so nothing is tried over IPv6");
    return;
  }
  constexpr int kSize = 4;
  sim::KeyStore store(sim::GlooDevice::board_keys(kSize), sim::GlooDevice::board_value_bytes(kSize));
  std::vector<std::string> complaints(kSize);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kSize; ++rank)
    ranks.emplace_back([&, rank] {
      try {
        sim::GlooDevice device("::1");
        const std::unique_ptr<Backend> backend = device.connect("six", rank, kSize, store, patient);
        Ledger ledger;
        Communicator communicator("six", rank, kSize, *backend, ledger);
        RandomCalls calls;
        calls.seed = 6;
        calls.calls = 30;
        calls.largest = 3000;
        complaints[static_cast<std::size_t>(rank)] = make_random_calls(communicator, calls);
      } catch (const std::exception& error) {
        complaints[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (std::thread& rank : ranks) rank.join();
  CHECK(joined(complaints) == "");
}

TEST_CASE("collectives over Gloo on processes: every kind, element type and size equals the naive reference") {
  for (const int size : {1, 2, 3, 8}) {
    sim::KeyStore store(sim::GlooDevice::board_keys(size), sim::GlooDevice::board_value_bytes(size));
    const auto run = [&](int rank) {
      return as_gloo_rank(rank, size, store, [&](Communicator& c) -> std::string {
        for (const Index largest : {Index{30}, Index{3000}, Index{100000}}) {
          RandomCalls calls;
          calls.seed = std::uint64_t(largest) + std::uint64_t(size);
          calls.calls = largest > 10000 ? 12 : 80;
          calls.largest = largest;
          const std::string wrong = make_random_calls(c, calls);
          if (!wrong.empty()) return wrong;
          c.ledger() = Ledger();
        }
        return "";
      });
    };
    CAPTURE(size);
    CHECK(joined(on_processes(size, run)) == "");
  }
}

TEST_CASE("a proof holds for its secret, group, ranks and challenges, and for nothing else") {
  const sim::Secret secret = sim::random_bytes(), other = sim::random_bytes();
  const sim::Challenge theirs = sim::random_bytes(), own = sim::random_bytes();
  CHECK(secret != other);
  const sim::Proof proof = sim::proof_of(secret, "dp 1", 2, 3, theirs, own);
  CHECK(sim::proves(proof, secret, "dp 1", 2, 3, theirs, own));
  CHECK_FALSE(sim::proves(proof, other, "dp 1", 2, 3, theirs, own));
  CHECK_FALSE(sim::proves(proof, secret, "dp 2", 2, 3, theirs, own));
  CHECK_FALSE(sim::proves(proof, secret, "dp 1", 3, 2, theirs, own));
  CHECK_FALSE(sim::proves(proof, secret, "dp 1", 2, 3, own, theirs));
  CHECK_FALSE(sim::proves(proof, secret, "dp 1", 2, 3, other, own));
  CHECK_FALSE(sim::proves(proof, secret, "dp 1", 2, 3, theirs, other));
  CHECK_FALSE(sim::proves(proof, secret, "dp 1", 1, 3, theirs, own));
  CHECK_FALSE(sim::proves(proof, secret, "dp 1", 2, 1, theirs, own));
  // Nor for ranks whose digits are the same, one after the other.
  CHECK_FALSE(sim::proves(sim::proof_of(secret, "dp 1", 1, 23, theirs, own), secret, "dp 1", 12, 3, theirs, own));
  CHECK_FALSE(sim::proves(sim::proof_of(secret, "dp", 11, 3, theirs, own), secret, "dp 1", 1, 3, theirs, own));
  for (std::size_t byte = 0; byte < proof.size(); ++byte) {
    sim::Proof wrong = proof;
    wrong[byte] ^= 1;
    CHECK_FALSE(sim::proves(wrong, secret, "dp 1", 2, 3, theirs, own));
  }
}

TEST_CASE("a proof is HMAC-SHA-512-256 of the group, both ranks and both challenges, in this order") {
  sim::Secret secret;
  sim::Challenge theirs, own;
  for (std::size_t i = 0; i < secret.size(); ++i) {
    secret[i] = static_cast<unsigned char>(i);
    theirs[i] = static_cast<unsigned char>(100 + i);
    own[i] = static_cast<unsigned char>(200 + i);
  }
  const sim::Proof proof = sim::proof_of(secret, "dp 1", 2, 3, theirs, own);
  std::string digits;
  for (const unsigned char byte : proof) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  CHECK(digits == "e2712e977b2e6516025674fb087a167fada53807a9ea364d6403350098f08b3a");
}

TEST_CASE("a rank that leaves right after its send takes nothing with it, however late its receiver reads") {
  for (const Index count : {Index{1}, Index{1000}, Index{200000}}) {
    sim::KeyStore store(sim::GlooDevice::board_keys(2), sim::GlooDevice::board_value_bytes(2));
    const auto run = [&](int rank) {
      std::thread wakes_receiver;
      const std::string wrong = as_gloo_rank(rank, 2, store, [&](Communicator& c) -> std::string {
        const Flat sent = values(count);
        Flat got(static_cast<std::size_t>(count), 0.0f);
        pid_t receiver = getpid();
        c.broadcast(reinterpret_cast<std::byte*>(&receiver), sizeof(receiver), 0);
        if (c.rank() == 0) {
          Transfer posted = c.irecv(got.data(), count, 1);
          c.barrier();
          posted.wait();
          return got == sent ? "" : "not what was sent";
        }
        c.barrier();
        kill(receiver, SIGSTOP);
        wakes_receiver = std::thread([receiver] {
          std::this_thread::sleep_for(milliseconds(100));
          kill(receiver, SIGCONT);
        });
        c.send(sent.data(), count, 0);
        return "";
      });
      if (wakes_receiver.joinable()) wakes_receiver.join();
      return wrong;
    };
    CAPTURE(count);
    CHECK(joined(on_processes(2, run)) == "");
  }
}

TEST_CASE("the kernel's counters: sent = payload + headers to the byte") {
  const int size = 4;
  sim::KeyStore store(sim::GlooDevice::board_keys(size), sim::GlooDevice::board_value_bytes(size));
  SharedCounter finished;
  const auto run = [&](int rank) {
    return as_gloo_rank(rank, size, store, [&](Communicator& c) -> std::string {
      if (c.backend().kernel_bytes_sent() != 0) return "something was sent before the first call";
      std::int64_t payload = 0;
      for (int round = 0; round < 30; ++round) {
        RandomCalls calls;
        calls.seed = std::uint64_t(round);
        calls.calls = 10;
        calls.largest = round % 3 == 0 ? 60000 : 900;
        c.ledger() = Ledger();
        const std::string wrong = make_random_calls(c, calls);
        if (!wrong.empty()) return wrong;
        payload += c.ledger().total().bytes_sent;  // barriers carry none
      }
      // Quiet: nobody sends any more, which the ranks tell each other through other memory.
      finished.add();
      if (!finished.wait_for(size)) return "the others did not finish";
      const std::optional<std::int64_t> kernel = c.backend().kernel_bytes_sent();
      if (!kernel) return "the kernel does not count";
      if (*kernel != payload + c.backend().header_bytes_sent()) {
        return "kernel " + std::to_string(*kernel) + ", payload " + std::to_string(payload) + " + headers " +
               std::to_string(c.backend().header_bytes_sent());
      }
      // The counters outlive the sockets.
      c.backend().close("it has been closed");
      if (c.backend().kernel_bytes_sent() != kernel) return "closing forgot the counters";
      return "";
    });
  };
  CHECK(joined(on_processes(size, run)) == "");
}

TEST_CASE("a message of 2⁴⁰ bytes: is refused before anything is sent or read, and the group goes on") {
  const auto complaints = on_gloo_threads(2, [](Communicator& c) -> std::string {
    c.barrier();
    const std::int64_t before = c.backend().header_bytes_sent();
    for (const bool sends : {true, false}) {
      char memory = 0;
      try {
        const std::int64_t bytes = std::int64_t{1} << 40;
        const Envelope send{CollectiveKind::send, ElementType::bytes, 0, 0},
            recv{CollectiveKind::recv, ElementType::bytes, 0, 0};
        if (sends) c.backend().post_send(send, 1 - c.rank(), &memory, bytes);
        if (!sends) c.backend().post_receive(recv, 1 - c.rank(), &memory, bytes);
        return "it was accepted";
      } catch (const std::invalid_argument& error) {
        if (std::string(error.what()) !=
            "a message of 1099511627776 bytes was to be sent in group gloo, but a message may have at most "
            "1099511627775 "
            "bytes")
          return error.what();
      }
    }
    if (c.backend().header_bytes_sent() != before) return "something was sent";
    return c.all_reduce(Flat{1}) == Flat{2} ? "" : "the group is broken";
  });
  CHECK(joined(complaints) == "");
}

#if defined(__linux__)
TEST_CASE("looking for the sockets of a process leaves no descriptor open") {
  const auto next_free = [] {
    const int lowest = dup(STDERR_FILENO);
    close(lowest);
    return lowest;
  };
  const int before = next_free();
  for (int i = 0; i < 3; ++i) sim::connected_tcp_sockets();
  CHECK(next_free() == before);
}
#endif
