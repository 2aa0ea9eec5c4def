#include "sim/launch/frames.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace muonwalk;
using namespace muonwalk::sim;
using std::chrono::milliseconds;

namespace {

// The largest piece of memory that was asked for since it was last set to 0.
std::atomic<std::size_t> largest_allocation{0};

}  // namespace

void* operator new(std::size_t bytes) {
  std::size_t before = largest_allocation;
  while (before < bytes && !largest_allocation.compare_exchange_weak(before, bytes)) {
  }
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

std::pair<OpenFile, OpenFile> pair_of_sockets() {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  return {OpenFile(ends[0]), OpenFile(ends[1])};
}

std::string random_text(std::mt19937& random, std::size_t count) {
  std::string text(count, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string text_of(const Frame& frame) { return {frame.bytes.begin(), frame.bytes.end()}; }

// A frame as it is on the wire.
std::string on_the_wire(std::uint8_t type, const std::string& bytes) {
  std::string wire;
  for (int i = 0; i < 4; ++i) wire += static_cast<char>(bytes.size() >> 8 * i & 0xff);
  return wire + static_cast<char>(type) + bytes;
}

void write_whole(const OpenFile& socket, const std::string& bytes) {
  REQUIRE(::send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace

TEST_CASE("frames come as they were sent, however the bytes on the way are split") {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    auto [raw, end] = pair_of_sockets();
    FramedConnection connection(std::move(end));
    std::vector<std::pair<std::uint8_t, std::string>> frames;
    std::string wire;
    for (int count = 0; count < 20; ++count) {
      const std::size_t sizes[] = {0, 1, 4, random() % 100, random() % 5000, 70000};
      frames.emplace_back(static_cast<std::uint8_t>(random()),
                          random_text(random, sizes[random() % (round < 5 ? 6 : 5)]));
      wire += on_the_wire(frames.back().first, frames.back().second);
    }
    std::size_t next = 0;
    const std::size_t most = round == 0 ? 1 : 1 + random() % 3000;
    for (std::size_t at = 0; at < wire.size();) {
      const std::size_t piece = std::min(wire.size() - at, most == 1 ? 1 : 1 + random() % most);
      write_whole(raw, wire.substr(at, piece));
      at += piece;
      while (const std::optional<Frame> frame = connection.receive()) {
        REQUIRE(next < frames.size());
        CHECK(frame->type == frames[next].first);
        CHECK(text_of(*frame) == frames[next].second);
        ++next;
      }
    }
    CHECK(next == frames.size());
    CHECK(!connection.ended());
  }
}

TEST_CASE("two ends that send a lot to each other at once get all of it") {
  auto [one, other] = pair_of_sockets();
  constexpr int kFrames = 3000;
  const auto work = [](OpenFile socket, unsigned seed) {
    std::mt19937 own(seed), theirs(3 - seed);
    FramedConnection connection(std::move(socket));
    int sent = 0, received = 0;
    std::string next = random_text(own, own() % 6000);
    while (sent < kFrames || received < kFrames || (connection.events() & POLLOUT) != 0) {
      while (sent < kFrames && connection.send(7, next)) {
        ++sent;
        next = random_text(own, own() % 6000);
      }
      if (std::optional<Frame> frame = connection.receive_within(milliseconds(received < kFrames ? 1000 : 1))) {
        if (frame->type != 7 || text_of(*frame) != random_text(theirs, theirs() % 6000)) return -1;
        ++received;
      } else if (connection.ended()) {
        break;
      }
    }
    return received;
  };
  int of_other = 0;
  OpenFile moved = std::move(other);
  std::thread thread([&] { of_other = work(std::move(moved), 2); });
  CHECK(work(std::move(one), 1) == kFrames);
  thread.join();
  CHECK(of_other == kFrames);
}

TEST_CASE("what a frame announces takes no memory, and one that is too long ends the connection") {
  for (const std::size_t announced :
       {std::size_t(0xffffffff), std::size_t(0x80000000), FramedConnection::most_frame_bytes + 1}) {
    auto [raw, end] = pair_of_sockets();
    FramedConnection connection(std::move(end));
    write_whole(raw, on_the_wire(1, "before"));
    std::string header = on_the_wire(2, "");
    for (std::size_t i = 0; i < 4; ++i) header[i] = static_cast<char>(announced >> 8 * i & 0xff);
    write_whole(raw, header + "whatever");
    largest_allocation = 0;
    const std::optional<Frame> frame = connection.receive();
    REQUIRE(frame);
    CHECK(text_of(*frame) == "before");
    CHECK(!connection.receive());
    CHECK(connection.ended());
    CHECK(connection.reason() == "a frame is longer than any may be");
    CHECK(largest_allocation < 100000);
  }
  auto [raw, end] = pair_of_sockets();
  FramedConnection connection(std::move(end));
  std::string header = on_the_wire(2, "");
  header[2] = 0x10;  // 1 MiB, which is allowed
  write_whole(raw, header + "only a little of it");
  largest_allocation = 0;
  CHECK(!connection.receive());
  CHECK(!connection.ended());
  CHECK(largest_allocation < 100000);
  const std::string rest(FramedConnection::most_frame_bytes - 19, 'x');
  std::thread writer([&, &to = raw] {
    for (std::size_t at = 0; at < rest.size();) {
      const ssize_t count = write(to.descriptor(), rest.data() + at, std::min<std::size_t>(rest.size() - at, 5000));
      if (count <= 0) return;
      at += static_cast<std::size_t>(count);
    }
  });
  const std::optional<Frame> whole = connection.receive_within(milliseconds(20000));
  writer.join();
  REQUIRE(whole);
  CHECK(text_of(*whole) == "only a little of it" + rest);
}

TEST_CASE("a queue that nobody empties has a bound; nothing is lost, and what does not fit can be tried again") {
  auto [one, other] = pair_of_sockets();
  FramedConnection sender(std::move(one)), receiver(std::move(other));
  const std::string big(100000, 'b');
  int sent = 0;
  while (sender.room() >= big.size() && sent < 1000) {
    CHECK(sender.send(1, big));
    ++sent;
  }
  CHECK(sent * big.size() < FramedConnection::most_queued_bytes + (2 << 20));  // with what the kernel has taken
  CHECK(!sender.send(1, big));
  CHECK(!sender.flush_within(milliseconds(20)));
  CHECK(!sender.ended());
  CHECK_THROWS_AS(sender.send(1, std::string(FramedConnection::most_frame_bytes + 1, 'x')), std::logic_error);
  int received = 0;
  while (received < sent) {
    sender.flush();
    const std::optional<Frame> frame = receiver.receive_within(milliseconds(1000));
    REQUIRE(frame);
    CHECK(text_of(*frame) == big);
    ++received;
  }
  CHECK(sender.flush_within(milliseconds(1000)));
  CHECK(sender.room() == FramedConnection::most_frame_bytes);
  CHECK(sender.send(2, "after"));
  CHECK(text_of(receiver.receive_within(milliseconds(1000)).value()) == "after");
}

TEST_CASE("a queue takes a frame of all the room that it says it has, to the last byte, and none of one byte more") {
  auto [one, other] = pair_of_sockets();
  FramedConnection sender(std::move(one)), receiver(std::move(other));
  int sent = 0;
  for (const std::string big(70001, 'b'); sender.room() > big.size(); ++sent) REQUIRE(sender.send(1, big));
  CHECK(sender.room() < FramedConnection::most_frame_bytes);
  CHECK(!sender.send(3, std::string(sender.room() + 1, 'd')));
  CHECK(sender.send(2, std::string(sender.room(), 'c')));
  CHECK(sender.room() == 0);
  CHECK(!sender.send(3, "d"));
  for (; sent >= 0; --sent) {
    sender.flush();
    const std::optional<Frame> frame = receiver.receive_within(milliseconds(5000));
    REQUIRE(frame);
    CHECK(frame->type == (sent == 0 ? 2 : 1));
  }
}

TEST_CASE("a peer that goes: what it sent before still comes, then the connection says that it has ended") {
  auto [one, other] = pair_of_sockets();
  FramedConnection left(std::move(one));
  {
    FramedConnection right(std::move(other));
    CHECK(right.send(1, "first"));
    CHECK(right.send(2, "last"));
  }
  // Whoever notices by sending loses nothing of it either.
  CHECK(left.send(3, "nobody reads this"));
  CHECK(text_of(left.receive().value()) == "first");
  CHECK(text_of(left.receive().value()) == "last");
  CHECK(!left.receive_within(milliseconds(1000)));
  CHECK(left.ended());
  CHECK(!left.reason().empty());
  CHECK(left.descriptor() == -1);
  CHECK(left.send(3, "nor this"));
  CHECK(!left.flush_within(milliseconds(10)));

  auto [raw, end] = pair_of_sockets();
  FramedConnection half(std::move(end));
  write_whole(raw, on_the_wire(1, "whole") + on_the_wire(2, "cut off").substr(0, 8));
  raw.close();
  CHECK(text_of(half.receive().value()) == "whole");
  CHECK(!half.receive());
  CHECK(half.ended());
  CHECK(half.reason() == "closed by the other end");
}

TEST_CASE("a connection is watched by the kernel for the time that was asked for") {
  FramedConnection connection(OpenFile(::socket(AF_INET, SOCK_STREAM, 0)));
  connection.end_when_host_is_silent(milliseconds(8000));
  const auto value = [&](int level, int option) {
    int found = -1;
    socklen_t length = sizeof(found);
    getsockopt(connection.descriptor(), level, option, &found, &length);
    return found;
  };
  CHECK(value(SOL_SOCKET, SO_KEEPALIVE) == 1);
#if defined(__linux__)
  CHECK(value(IPPROTO_TCP, TCP_USER_TIMEOUT) == 8000);
  CHECK(value(IPPROTO_TCP, TCP_KEEPIDLE) == 2);
  CHECK(value(IPPROTO_TCP, TCP_KEEPINTVL) == 2);
  CHECK(value(IPPROTO_TCP, TCP_KEEPCNT) == 3);
  // A short time is probed every second, a long one every minute.
  connection.end_when_host_is_silent(milliseconds(700));
  CHECK(value(IPPROTO_TCP, TCP_USER_TIMEOUT) == 700);
  CHECK(value(IPPROTO_TCP, TCP_KEEPIDLE) == 1);
  CHECK(value(IPPROTO_TCP, TCP_KEEPINTVL) == 1);
  connection.end_when_host_is_silent(std::chrono::hours(1));
  CHECK(value(IPPROTO_TCP, TCP_USER_TIMEOUT) == 3600000);
  CHECK(value(IPPROTO_TCP, TCP_KEEPIDLE) == 60);
  CHECK(value(IPPROTO_TCP, TCP_KEEPINTVL) == 60);
#endif
}

TEST_CASE("a socket is one descriptor: it goes with its owner, closes once, and what it was moved from has none") {
  const auto is_open = [](int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; };
  int first = -1, second = -1;
  {
    auto [one, other] = pair_of_sockets();
    first = one.descriptor();
    second = other.descriptor();
    CHECK(is_open(first));
    OpenFile moved = std::move(one);
    CHECK(!one);
    CHECK(one.descriptor() == -1);
    CHECK(moved.descriptor() == first);
    CHECK(is_open(first));
    moved = std::move(other);  // closes what it had
    CHECK(!is_open(first));
    CHECK(is_open(second));
    CHECK(moved.descriptor() == second);
    OpenFile& itself = moved;
    moved = std::move(itself);
    CHECK(is_open(second));
    moved.close();
    CHECK(!moved);
    CHECK(!is_open(second));
    const int reused = dup(STDERR_FILENO);
    moved.close();
    CHECK(is_open(reused));
    close(reused);
  }
  {
    auto [one, other] = pair_of_sockets();
    first = one.descriptor();
  }
  CHECK(!is_open(first));
}

TEST_CASE("a connection waits no longer than it is told, and a frame that comes meanwhile ends the wait") {
  auto [raw, end] = pair_of_sockets();
  FramedConnection connection(std::move(end));
  const auto began = std::chrono::steady_clock::now();
  CHECK(!connection.receive_within(milliseconds(60)));
  CHECK(std::chrono::steady_clock::now() - began >= milliseconds(60));
  CHECK(!connection.ended());
  CHECK(connection.reason().empty());
  CHECK(connection.events() == POLLIN);
  CHECK(connection.flush_within(milliseconds(0)));  // there is nothing to be sent
  std::thread late([&, &to = raw] {
    std::this_thread::sleep_for(milliseconds(30));
    write_whole(to, on_the_wire(200, "late"));
  });
  const std::optional<Frame> frame = connection.receive_within(milliseconds(60000));
  late.join();
  REQUIRE(frame);
  CHECK(frame->type == 200);
  CHECK(text_of(*frame) == "late");
  CHECK(std::chrono::steady_clock::now() - began < milliseconds(30000));
}
