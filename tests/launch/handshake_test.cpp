// Everybody who is not a rank and connects to the port where the ranks meet, on a network of this test's own.

#include <arpa/inet.h>
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "sim/launch/listener.hpp"
#include "sim/ranks/private_network.hpp"
#include "src/errors.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;
using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

namespace {

// How many bytes were received over each descriptor since it was opened, and the most over any.
std::array<std::atomic<std::size_t>, 4096> received_over{};
std::atomic<std::size_t> most_received{0};

template <class Function>
Function* next_definition(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// What the library calls; the test's own ends read and write.
extern "C" ssize_t recv(int descriptor, void* bytes, size_t count, int flags) {
  static auto* const real = next_definition<ssize_t(int, void*, size_t, int)>("recv");
  const ssize_t received = real(descriptor, bytes, count, flags);
  if (received > 0 && descriptor < static_cast<int>(received_over.size())) {
    const std::size_t all = received_over[static_cast<std::size_t>(descriptor)] += static_cast<std::size_t>(received);
    if (all > most_received) most_received = all;
  }
  return received;
}

extern "C" int accept(int descriptor, sockaddr* address, socklen_t* length) {
  static auto* const real = next_definition<int(int, sockaddr*, socklen_t*)>("accept");
  const int accepted = real(descriptor, address, length);
  if (accepted >= 0 && accepted < static_cast<int>(received_over.size()))
    received_over[static_cast<std::size_t>(accepted)] = 0;
  return accepted;
}

extern "C" int connect(int descriptor, const sockaddr* address, socklen_t length) {
  static auto* const real = next_definition<int(int, const sockaddr*, socklen_t)>("connect");
  if (descriptor < static_cast<int>(received_over.size())) received_over[static_cast<std::size_t>(descriptor)] = 0;
  return real(descriptor, address, length);
}

namespace {

// Moves this test to a network of its own where the system allows it, before it has a thread.
const bool alone = PrivateNetwork().enter();

const Secret kSecret = [] {
  Secret secret;
  secret.fill(7);
  return secret;
}();
const Secret kOtherSecret = [] {
  Secret secret;
  secret.fill(8);
  return secret;
}();

// A stranger's end: it writes and reads as it pleases.
class Stranger {
 public:
  explicit Stranger(int port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_.descriptor(), reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  // Takes the other side of a connection that a test's own listener was given.
  explicit Stranger(OpenFile socket) : socket_(std::move(socket)) {}

  bool connected() const { return connected_; }
  void say(const std::string& bytes) const { send(socket_.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void say_no_more() const { shutdown(socket_.descriptor(), SHUT_WR); }
  // What was said to it, up to `count` bytes; shorter where the other end has closed or says nothing for 10 s.
  std::string hear(std::size_t count) const {
    std::string heard(count, '\0');
    std::size_t have = 0;
    pollfd polled = {socket_.descriptor(), POLLIN, 0};
    while (have < count && poll(&polled, 1, 10000) == 1) {
      const ssize_t more = read(socket_.descriptor(), &heard[have], count - have);
      if (more <= 0) break;
      have += static_cast<std::size_t>(more);
    }
    return heard.substr(0, have);
  }
  bool was_closed() const { return hear(1).empty(); }

 private:
  OpenFile socket_;
  bool connected_ = true;
};

template <class Bytes>
std::string text_of(const Bytes& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::array<unsigned char, 32> bytes_of(const std::string& text) {
  std::array<unsigned char, 32> bytes = {};
  std::copy_n(text.begin(), std::min<std::size_t>(text.size(), 32), bytes.begin());
  return bytes;
}

// What a rank answers to a challenge.
std::string answer_of(const Secret& secret, const std::string& challenge) {
  const Challenge own = random_bytes();
  return text_of(own) + text_of(proof_of(secret, "launch", 1, 0, bytes_of(challenge), own));
}

// A listener at work on a thread of its own, like that of rank 0; it keeps the sockets of those that it let in.
class Door {
 public:
  Door() : listener_("127.0.0.1", 0, kSecret), port_(listener_.port()) {
    thread_ = std::thread([this] {
      while (!ends_) {
        while (std::optional<OpenFile> proven = listener_.take()) {
          inside_.push_back(std::move(*proven));
          ++let_in;
        }
        turned_away = listener_.turned_away();
        std::this_thread::sleep_for(milliseconds(2));
      }
    });
  }
  ~Door() { close(); }
  int port() const { return port_; }
  // Ends the work; then the sockets are the test's.
  std::vector<OpenFile>& close() {
    ends_ = true;
    if (thread_.joinable()) thread_.join();
    listener_.close();
    turned_away = listener_.turned_away();
    return inside_;
  }
  bool wait_for(const std::function<bool()>& condition) const {
    const auto deadline = steady_clock::now() + seconds(30);
    while (!condition() && steady_clock::now() < deadline) std::this_thread::sleep_for(milliseconds(1));
    return condition();
  }
  std::atomic<int> let_in{0};
  std::atomic<long> turned_away{0};

 private:
  Listener listener_;
  int port_;
  std::atomic<bool> ends_{false};
  std::vector<OpenFile> inside_;
  std::thread thread_;
};

OpenFile join(int port, const Secret& secret = kSecret, milliseconds time = seconds(30)) {
  return connect_to("127.0.0.1", port, "127.0.0.1", secret, steady_clock::now() + time);
}

std::string refusal_of(int port, const Secret& secret, milliseconds time) {
  try {
    join(port, secret, time);
  } catch (const RunError& error) {
    return error.what();
  }
  return "";
}

bool may_open_ports() {
  if (!alone) MESSAGE("left out: this system lets a process have no network of its own to try it on");
  return alone;
}

}  // namespace

TEST_CASE(
    "who knows the secret is let in, whatever pieces its answer comes in; what follows the answer is not touched") {
  if (!may_open_ports()) return;
  most_received = 0;
  Door door;
  const OpenFile rank = join(door.port());
  CHECK(rank);
  const Stranger at_once(door.port()), in_pieces(door.port()), half_closed(door.port());
  at_once.say(answer_of(kSecret, at_once.hear(32)) + "and more");
  for (const char byte : answer_of(kSecret, in_pieces.hear(32))) in_pieces.say(std::string(1, byte));
  half_closed.say(answer_of(kSecret, half_closed.hear(32)));
  half_closed.say_no_more();
  for (const Stranger* one : {&at_once, &in_pieces, &half_closed}) CHECK(one->hear(32).size() == 32);
  CHECK(door.wait_for([&] { return door.let_in == 4; }));
  int with_more = 0;
  for (const OpenFile& inside : door.close()) {
    char bytes[16] = {};
    const ssize_t count = read(inside.descriptor(), bytes, sizeof(bytes));
    if (count == 8 && std::string(bytes) == "and more") ++with_more;
  }
  CHECK(with_more == 1);
  CHECK(door.turned_away == 0);
  CHECK(most_received <= 64);
}

TEST_CASE("who does not know the secret is turned away, and hears nothing but a challenge; ranks still get in") {
  if (!may_open_ports()) return;
  most_received = 0;
  Door door;
  long strangers = 0;
  const auto turned_away = [&](const char* what, const std::function<void(const Stranger&)>& way) {
    CAPTURE(what);
    const Stranger stranger(door.port());
    way(stranger);
    stranger.hear(32);
    CHECK(stranger.was_closed());
    ++strangers;
    CHECK(door.wait_for([&] { return door.turned_away == strangers; }));
    CHECK(join(door.port()));
  };
  std::mt19937 random(4);
  std::string noise(1 << 20, '\0');
  for (char& c : noise) c = static_cast<char>(random());

  turned_away("the wrong secret", [](const Stranger& s) { s.say(answer_of(kOtherSecret, s.hear(32))); });
  turned_away("one bit of the proof", [](const Stranger& s) {
    std::string answer = answer_of(kSecret, s.hear(32));
    answer[63] = static_cast<char>(answer[63] ^ 1);
    s.say(answer);
  });
  turned_away("one bit of its challenge", [](const Stranger& s) {
    std::string answer = answer_of(kSecret, s.hear(32));
    answer[0] = static_cast<char>(answer[0] ^ 1);
    s.say(answer);
  });
  turned_away("the listener's proof for its own", [](const Stranger& s) {
    const Challenge own = random_bytes(), theirs = bytes_of(s.hear(32));
    s.say(text_of(own) + text_of(proof_of(kSecret, "launch", 0, 1, theirs, own)));
  });
  turned_away("the challenge reflected", [](const Stranger& s) {
    const std::string challenge = s.hear(32);
    s.say(challenge + challenge);
  });
  turned_away("zeros", [](const Stranger& s) { s.say(std::string(64, '\0')); });
  turned_away("noise", [&](const Stranger& s) { s.say(noise.substr(0, 64)); });
  turned_away("a megabyte of noise", [&](const Stranger& s) { s.say(noise); });
  turned_away("an answer cut short", [](const Stranger& s) {
    s.say(answer_of(kSecret, s.hear(32)).substr(0, 63));
    s.say_no_more();
  });
  turned_away("nothing, half closed", [](const Stranger& s) { s.say_no_more(); });
  turned_away("nothing at all", [](const Stranger&) {});
  turned_away("byte after byte, for more than a second", [](const Stranger& s) {
    const std::string answer = answer_of(kSecret, s.hear(32));
    for (std::size_t at = 0; at < 63; ++at) {
      s.say(answer.substr(at, 1));
      std::this_thread::sleep_for(milliseconds(17));
    }
    std::this_thread::sleep_for(milliseconds(100));
    s.say(answer.substr(63));
  });
  // Word for word what a rank has said before, to a challenge that is new.
  {
    const Stranger rank(door.port());
    const std::string said = answer_of(kSecret, rank.hear(32));
    rank.say(said);
    CHECK(rank.hear(32).size() == 32);
    turned_away("a rank's answer replayed", [&](const Stranger& s) { s.say(said); });
  }
  CHECK(most_received <= 64);
}

TEST_CASE(
    "whoever answers at the port of rank 0 and does not know the secret gets no rank, and 64 bytes are read of it") {
  if (!may_open_ports()) return;
  most_received = 0;
  const OpenFile listening(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in own = {};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(own);
  REQUIRE(bind(listening.descriptor(), reinterpret_cast<sockaddr*>(&own), sizeof(own)) == 0);
  REQUIRE(listen(listening.descriptor(), 64) == 0);
  REQUIRE(getsockname(listening.descriptor(), reinterpret_cast<sockaddr*>(&own), &length) == 0);
  const std::vector<std::function<void(const Stranger&)>> ways = {
      [](const Stranger&) {},
      [](const Stranger& s) { s.hear(1); },
      [](const Stranger& s) { s.say(std::string(1 << 16, 'x')); },
      [](const Stranger& s) {  // the rank's own proof reflected
        s.say(std::string(32, 'c'));
        const std::string heard = s.hear(64);
        s.say(heard.size() == 64 ? heard.substr(32) : "");
      },
      [](const Stranger& s) {  // with the wrong secret
        const std::string challenge(32, 'c');
        s.say(challenge);
        const Challenge theirs = bytes_of(s.hear(64));
        s.say(text_of(proof_of(kOtherSecret, "launch", 0, 1, theirs, bytes_of(challenge))));
      },
  };
  std::atomic<bool> ends{false};
  std::thread impostor([&] {
    for (std::size_t turn = 0; !ends; ++turn) {
      pollfd polled = {listening.descriptor(), POLLIN, 0};
      if (poll(&polled, 1, 20) == 1)
        ways[turn % ways.size()](Stranger(OpenFile(accept(listening.descriptor(), nullptr, nullptr))));
    }
  });
  const std::string refusal = refusal_of(ntohs(own.sin_port), kSecret, milliseconds(600));
  ends = true;
  impostor.join();
  CHECK(refusal.find("rank 0 was not found at 127.0.0.1:") == 0);
  CHECK(most_received <= 64);
}

TEST_CASE("a rank that is there before rank 0 waits for it, and says what happened last when nobody comes") {
  if (!may_open_ports()) return;
  int port = 0;
  {
    const Listener gone("127.0.0.1", 0, kSecret);
    port = gone.port();
  }
  CHECK(refusal_of(port, kSecret, milliseconds(100)).find("Connection refused") != std::string::npos);
  auto early = std::async(std::launch::async, [&] { return static_cast<bool>(join(port)); });
  std::this_thread::sleep_for(milliseconds(100));
  Listener listener("127.0.0.1", port, kSecret);
  std::optional<OpenFile> proven;
  while (early.wait_for(milliseconds(2)) != std::future_status::ready)
    if (auto socket = listener.take()) proven = std::move(socket);
  CHECK(early.get());
  CHECK(proven);
  Door door;
  CHECK(refusal_of(door.port(), kOtherSecret, seconds(2)).find("with another secret") != std::string::npos);
  CHECK(door.wait_for([&] { return door.turned_away > 0; }));
}

TEST_CASE("of many that say nothing, 64 are open at a time; the oldest make room, and all are gone at the end") {
  if (!may_open_ports()) return;
  Listener listener("127.0.0.1", 0, kSecret);
  std::vector<Stranger> silent;
  for (int count = 0; count < 200; ++count) silent.emplace_back(listener.port());
  for (long turned_away = 0; turned_away < 200 - 64; turned_away = listener.turned_away()) {
    CHECK(!listener.take());
    std::vector<pollfd> polled;
    listener.add_to(polled);
    REQUIRE(polled.size() <= 65);
    // Who was turned away is one of those that came first.
    for (long one = turned_away; one < listener.turned_away(); ++one) {
      silent[static_cast<std::size_t>(one)].hear(32);
      REQUIRE(silent[static_cast<std::size_t>(one)].was_closed());
    }
    std::this_thread::sleep_for(milliseconds(1));
  }
  CHECK(listener.turned_away() == 200 - 64);
  listener.close();
  CHECK(listener.turned_away() == 200);
  CHECK(!Stranger(listener.port()).connected());
}

TEST_CASE("a crowd at the door pushes out nobody who has just come: it waits outside until there is room") {
  if (!may_open_ports()) return;
  bool held = false;
  for (int attempt = 0; attempt < 20 && !held; ++attempt) {  // a busy machine may take longer than a rank is given
    Listener listener("127.0.0.1", 0, kSecret);
    const Stranger rank(listener.port());
    std::vector<Stranger> crowd;
    for (int count = 0; count < 100; ++count) crowd.emplace_back(listener.port());
    listener.take();
    if (listener.turned_away() > 0) continue;
    rank.say(answer_of(kSecret, rank.hear(32)));
    held = listener.take().has_value();
  }
  CHECK(held);
}
