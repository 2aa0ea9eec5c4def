// A process that is not a rank: it waits for ports of 127.0.0.1 that somebody opens after its start, and connects to
// each of them as fast as it can.
//
//   stranger WAY    WAY is what it does once it is connected: silent, garbage, opcodes, megabyte, half, drop, replay,
//   or
//                   mixed, which takes turns
//
// It says "ready" when it begins. At SIGTERM it prints "N connections, N bytes received": what came from the other
// ends.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

const std::vector<std::string> kWays = {"silent", "garbage", "opcodes", "megabyte", "half", "drop", "replay"};
constexpr std::size_t kMostOpen = 200;

volatile std::sig_atomic_t over = 0;

std::mt19937_64 any(std::random_device{}());

std::set<int> listening_ports() {
  std::set<int> ports;
  std::ifstream table("/proc/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string number, local, peer, state;
    fields >> number >> local >> peer >> state;
    if (state == "0A" && local.rfind("0100007F:", 0) == 0) ports.insert(std::stoi(local.substr(9), nullptr, 16));
  }
  return ports;
}

// What Gloo writes before a message, and what follows.
struct Preamble {
  std::uint64_t bytes, opcode, slot, offset, length, roffset;
};

std::string bytes_of(const Preamble& preamble) {
  return std::string(reinterpret_cast<const char*>(&preamble), sizeof(preamble));
}

std::string random_text(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(any());
  return text;
}

// What a rank says when it proves itself, as somebody heard it in another run: it gets ready, announces a challenge and
// sends it.
std::string replayed() {
  std::string text;
  for (const std::uint64_t slot : {std::uint64_t{0x44} << 56, std::uint64_t{0x45} << 56})
    text += bytes_of({48, 3, slot, 0, 32, 0}) + bytes_of({48, 2, slot, 0, 32, 0}) + bytes_of({80, 1, slot, 0, 32, 0}) +
            random_text(32);
  return text;
}

// Any of Gloo's own words, well formed and out of place.
std::string opcodes() {
  return bytes_of({48 + any() % 64, any() % 5, any() << 56, 0, any() % 4096, 0}) + random_text(64);
}

void act(int connection, const std::string& way) {
  std::string text;
  if (way == "garbage") text = random_text(64 + any() % 200);
  if (way == "opcodes") text = opcodes();
  if (way == "megabyte") text = random_text(std::size_t{1} << 20);
  if (way == "replay") text = replayed();
  if (!text.empty() && send(connection, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) return;
  if (way == "half") shutdown(connection, SHUT_WR);
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGTERM, [](int) { over = 1; });
  const std::string way = words[1];
  const std::set<int> others = listening_ports();
  std::set<int> known = others;
  std::deque<int> open;
  long connections = 0, received = 0;
  const auto finish = [&](int connection) {
    char bytes[4096];
    for (ssize_t got; (got = recv(connection, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0;) received += got;
    close(connection);
  };
  std::printf("ready\n");
  std::fflush(stdout);
  while (over == 0) {
    const std::set<int> ports = listening_ports();
    for (const int port : ports) {
      if (known.count(port)) continue;
      const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      sockaddr_in address = {};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<std::uint16_t>(port));
      address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      pollfd done = {connection, POLLOUT, 0};
      const bool connected =
          (connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 || errno == EINPROGRESS) &&
          poll(&done, 1, 20) == 1 && (done.revents & (POLLERR | POLLHUP)) == 0;
      if (!connected) {
        close(connection);
        continue;
      }
      ++connections;
      const std::string now = way == "mixed" ? kWays[any() % kWays.size()] : way;
      act(connection, now);
      if (now == "drop") {
        close(connection);
      } else {
        open.push_back(connection);
      }
      if (open.size() > kMostOpen) {
        finish(open.front());
        open.pop_front();
      }
    }
    known = ports;
    known.insert(others.begin(), others.end());
  }
  for (const int connection : open) finish(connection);
  std::printf("%ld connections, %ld bytes received\n", connections, received);
}
