// What the kernel says of this process's connections: which there are, what went over each, and what is still on its
// way.

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/transport/tcp_sockets.hpp"

using namespace muonwalk::sim;

#if defined(__linux__)

namespace {

// Two ends of one connection over the loopback, and the socket that listened for it.
struct Connection {
  Connection() : listens(socket(AF_INET, SOCK_STREAM, 0)), one(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof own;
    REQUIRE(bind(listens, reinterpret_cast<sockaddr*>(&own), length) == 0);
    REQUIRE(listen(listens, 1) == 0);
    REQUIRE(getsockname(listens, reinterpret_cast<sockaddr*>(&own), &length) == 0);
    REQUIRE(connect(one, reinterpret_cast<sockaddr*>(&own), length) == 0);
    other = accept(listens, nullptr, nullptr);
    REQUIRE(other >= 0);
    port = ntohs(own.sin_port);
  }
  ~Connection() {
    for (const int end : {listens, one, other})
      if (end >= 0) close(end);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int listens, one, other = -1;
  int port = 0;
};

std::uint64_t inode(int descriptor) {
  struct stat found = {};
  REQUIRE(fstat(descriptor, &found) == 0);
  return found.st_ino;
}

TcpSocket found(int descriptor) {
  for (const TcpSocket& socket : connected_tcp_sockets())
    if (socket.descriptor == descriptor) return socket;
  FAIL("descriptor " << descriptor << " is not among the connected sockets");
  return {};
}

void read_whole(int descriptor, std::size_t bytes) {
  std::vector<char> memory(bytes);
  for (std::size_t got = 0; got < bytes;) {
    const ssize_t more = read(descriptor, memory.data(), bytes - got);
    REQUIRE(more > 0);
    got += static_cast<std::size_t>(more);
  }
}

}  // namespace

TEST_CASE("the connected sockets: both ends of each connection with their addresses and inodes, and no other file") {
  const std::size_t before = connected_tcp_sockets().size();
  const Connection first, second;
  int in_process[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, in_process) == 0);
  const int file = open("/dev/null", O_RDONLY);
  CHECK(connected_tcp_sockets().size() == before + 4);
  for (const Connection* connection : {&first, &second}) {
    const TcpSocket one = found(connection->one), other = found(connection->other);
    CHECK(other.local == fmt::format("127.0.0.1:{}", connection->port));
    CHECK(one.peer == other.local);
    CHECK(one.local == other.peer);
    CHECK(one.local != one.peer);
    CHECK(one.inode == inode(connection->one));
    CHECK(other.inode == inode(connection->other));
  }
  for (const int each : {in_process[0], in_process[1], file}) close(each);
}

TEST_CASE("a connection's counter: every byte that was written, sent or not, and none that has arrived") {
  const Connection connection;
  const TcpSocket one = found(connection.one), other = found(connection.other);
  const auto counted = [](const TcpSocket& socket) {
    const std::optional<std::int64_t> sent = bytes_sent(socket);
    REQUIRE(sent);
    return *sent;
  };
  CHECK(counted(one) == 0);
  CHECK_FALSE(holds_unsent_bytes(one));
  REQUIRE(send(connection.one, "seven b", 7, 0) == 7);
  REQUIRE(send(connection.other, "three", 5, 0) == 5);
  pollfd polled = {connection.other, POLLIN, 0};
  REQUIRE(poll(&polled, 1, 10000) == 1);
  CHECK(counted(one) == 7);
  CHECK(counted(other) == 5);
  read_whole(connection.other, 7);
  // More than both kernels have room for: what is accepted counts as sent, and is held until the other end reads.
  const std::vector<char> much(1 << 20, 'x');
  std::size_t written = 0;
  for (ssize_t more = 1; more > 0; written += more > 0 ? static_cast<std::size_t>(more) : 0)
    more = send(connection.one, much.data(), much.size(), MSG_DONTWAIT);
  CHECK(counted(one) == 7 + static_cast<std::int64_t>(written));
  CHECK(holds_unsent_bytes(one));
  read_whole(connection.other, written);
  CHECK(counted(one) == 7 + static_cast<std::int64_t>(written));
  for (int turn = 0; holds_unsent_bytes(one) && turn < 10000; ++turn) usleep(1000);
  CHECK_FALSE(holds_unsent_bytes(one));
}

TEST_CASE("a socket that was closed is not taken for the one that has its descriptor now") {
  TcpSocket gone;
  const Connection lasting;
  {
    const Connection connection;
    gone = found(connection.one);
    CHECK(bytes_sent(gone));
  }
  CHECK_FALSE(bytes_sent(gone));
  CHECK_FALSE(holds_unsent_bytes(gone));
  REQUIRE(dup2(lasting.one, gone.descriptor) == gone.descriptor);
  const std::vector<char> much(1 << 20, 'x');
  while (send(lasting.one, much.data(), much.size(), MSG_DONTWAIT) > 0) {
  }
  CHECK_FALSE(bytes_sent(gone));
  CHECK_FALSE(holds_unsent_bytes(gone));
  close(gone.descriptor);
  CHECK_FALSE(bytes_sent(TcpSocket{}));
  CHECK_FALSE(holds_unsent_bytes(TcpSocket{}));
}

#endif
