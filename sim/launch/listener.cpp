#include "sim/launch/listener.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>

#include "sim/transport/tcp_sockets.hpp"
#include "src/errors.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Who proves what to whom, for proof_of.
constexpr char kGroup[] = "launch";
constexpr int kListening = 0, kConnecting = 1;

constexpr milliseconds kBetweenTries(50);
// Connections that are taken from the kernel at once, so that a flood does not keep the caller from its other work.
constexpr int kAcceptsAtOnce = 256;

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// The addresses of a host; none, and the system's reason, where it has none.
Addresses addresses_of(const std::string& host, int port, int flags, std::string& reason) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    reason = error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error);
    found = nullptr;
  }
  return Addresses(found, freeaddrinfo);
}

OpenFile tcp_socket(int family) {
  OpenFile made(socket(family, SOCK_STREAM, 0));
  if (!made) return made;
  fcntl(made.descriptor(), F_SETFD, FD_CLOEXEC);
  fcntl(made.descriptor(), F_SETFL, O_NONBLOCK);
  return made;
}

void set(const OpenFile& socket, int level, int option) {
  const int on = 1;
  setsockopt(socket.descriptor(), level, option, &on, sizeof(on));
}

bool would_wait(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINPROGRESS; }

// Reads until `count` bytes are there; false when the other end goes or the deadline passes before.
bool read_all(const OpenFile& socket, unsigned char* bytes, std::size_t count, steady_clock::time_point deadline) {
  for (std::size_t received = 0; received < count;) {
    const ssize_t more = recv(socket.descriptor(), bytes + received, count - received, 0);
    if (more > 0) received += static_cast<std::size_t>(more);
    if (more > 0 || (more < 0 && errno == EINTR)) continue;
    if (more == 0 || !would_wait(errno)) return false;
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd polled = {socket.descriptor(), POLLIN, 0};
    poll(&polled, 1, static_cast<int>(left));
  }
  return true;
}

// Fits into the buffer of a new socket, or the other end is not worth waiting for.
template <class Bytes>
bool write_all(const OpenFile& socket, const Bytes& bytes) {
  return send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

// The connecting side of one handshake. False, and why, where it does not come to its end.
bool shake_hands(const OpenFile& socket, const Secret& secret, steady_clock::time_point deadline, std::string& reason) {
  Challenge theirs;
  reason = "it did not say what a run of this program says first";
  if (!read_all(socket, theirs.data(), theirs.size(), deadline)) return false;
  const Challenge own = random_bytes();
  const Proof proof = proof_of(secret, kGroup, kConnecting, kListening, theirs, own);
  std::array<unsigned char, Handshake::most_bytes> answer;
  std::copy(own.begin(), own.end(), answer.begin());
  std::copy(proof.begin(), proof.end(), answer.begin() + own.size());
  Proof their_proof;
  reason = "it turned this process away, as it does with another secret";
  if (!write_all(socket, answer) || !read_all(socket, their_proof.data(), their_proof.size(), deadline)) return false;
  reason = "whoever answered does not know the secret";
  return proves(their_proof, secret, kGroup, kListening, kConnecting, own, theirs);
}

OpenFile connected(const addrinfo& to, const std::string& own_address, steady_clock::time_point deadline,
                   std::string& reason) {
  OpenFile made = tcp_socket(to.ai_family);
  const auto failed = [&](int error) {
    reason = std::strerror(error);
    return OpenFile();
  };
  if (!made) return failed(errno);
  if (!own_address.empty()) {
    const Addresses own = addresses_of(own_address, 0, AI_NUMERICHOST, reason);
    if (own == nullptr) return OpenFile();
    if (own->ai_family != to.ai_family) return failed(EAFNOSUPPORT);
    if (bind(made.descriptor(), own->ai_addr, own->ai_addrlen) != 0) return failed(errno);
  }
  if (connect(made.descriptor(), to.ai_addr, to.ai_addrlen) != 0) {
    if (!would_wait(errno)) return failed(errno);
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
    pollfd polled = {made.descriptor(), POLLOUT, 0};
    if (poll(&polled, 1, static_cast<int>(std::clamp<long>(left, 0, 1 << 30))) <= 0) return failed(ETIMEDOUT);
    int error = 0;
    socklen_t length = sizeof(error);
    if (getsockopt(made.descriptor(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) return failed(error);
  }
  // A system that looks for a free port may find the one that nobody listens at yet, and connect a socket to itself.
  if (local_end(made.descriptor()) == peer_end(made.descriptor())) return failed(ECONNREFUSED);
  return made;
}

}  // namespace

// A connection whose other end has not proven itself yet.
struct Listener::Unproven {
  OpenFile socket;
  std::chrono::steady_clock::time_point deadline;
  Challenge challenge;
  std::array<unsigned char, Handshake::most_bytes> bytes;
  std::size_t received = 0;
};

Listener::~Listener() = default;

Listener::Listener(const std::string& address, int port, const Secret& secret) : secret_(secret) {
  std::string reason;
  const Addresses found = addresses_of(address, port, AI_NUMERICHOST | AI_PASSIVE, reason);
  if (found != nullptr) {
    socket_ = tcp_socket(found->ai_family);
    if (socket_) {
      set(socket_, SOL_SOCKET, SO_REUSEADDR);
      if (found->ai_family == AF_INET6) set(socket_, IPPROTO_IPV6, IPV6_V6ONLY);
    }
    sockaddr_storage own = {};
    socklen_t length = sizeof(own);
    if (socket_ && bind(socket_.descriptor(), found->ai_addr, found->ai_addrlen) == 0 &&
        listen(socket_.descriptor(), SOMAXCONN) == 0 &&
        getsockname(socket_.descriptor(), reinterpret_cast<sockaddr*>(&own), &length) == 0) {
      port_ = ntohs(found->ai_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&own)->sin6_port
                                                 : reinterpret_cast<sockaddr_in*>(&own)->sin_port);
      return;
    }
    reason = std::strerror(errno);
  }
  throw UsageError(
      fmt::format("rank 0 can't listen at {} port {} for the other ranks: {}; choose another port with "
                  "--rendezvous HOST:PORT, or another address with --interface",
                  visible_name(address), port, reason));
}

void Listener::add_to(std::vector<pollfd>& polled) const {
  if (socket_ && has_room()) polled.push_back({socket_.descriptor(), POLLIN, 0});
  for (const Unproven& connection : unproven_) polled.push_back({connection.socket.descriptor(), POLLIN, 0});
}

bool Listener::has_room() const {
  return unproven_.size() < Handshake::most_unproven ||
         steady_clock::now() >= unproven_.front().deadline - Handshake::time + Handshake::least_time;
}

// Takes a connection from the kernel and greets it; false when nobody waits there, or there is no room.
bool Listener::accept_one() {
  if (!socket_ || !has_room()) return false;
  OpenFile coming(accept(socket_.descriptor(), nullptr, nullptr));
  // Without a descriptor nobody could come in any more.
  const bool none_left = !coming && (errno == EMFILE || errno == ENFILE) && !unproven_.empty();
  if (!coming && !none_left) return errno == EINTR || errno == ECONNABORTED;
  if (none_left || unproven_.size() == Handshake::most_unproven) {
    unproven_.pop_front();
    ++turned_away_;
  }
  if (none_left) return true;
  fcntl(coming.descriptor(), F_SETFD, FD_CLOEXEC);
  fcntl(coming.descriptor(), F_SETFL, O_NONBLOCK);
  set(coming, IPPROTO_TCP, TCP_NODELAY);
  Unproven connection;
  connection.socket = std::move(coming);
  connection.deadline = steady_clock::now() + Handshake::time;
  connection.challenge = random_bytes();
  if (write_all(connection.socket, connection.challenge))
    unproven_.push_back(std::move(connection));
  else
    ++turned_away_;
  return true;
}

Listener::Progress Listener::advance(Unproven& connection) {
  if (steady_clock::now() >= connection.deadline) return Progress::strange;
  auto& bytes = connection.bytes;
  while (connection.received < bytes.size()) {
    const ssize_t more =
        recv(connection.socket.descriptor(), bytes.data() + connection.received, bytes.size() - connection.received, 0);
    if (more < 0 && errno == EINTR) continue;
    if (more < 0 && would_wait(errno)) return Progress::waits;
    if (more <= 0) return Progress::strange;
    connection.received += static_cast<std::size_t>(more);
  }
  Challenge theirs;
  Proof proof;
  std::copy_n(bytes.begin(), theirs.size(), theirs.begin());
  std::copy_n(bytes.begin() + theirs.size(), proof.size(), proof.begin());
  if (!proves(proof, secret_, kGroup, kConnecting, kListening, connection.challenge, theirs)) return Progress::strange;
  const Proof own = proof_of(secret_, kGroup, kListening, kConnecting, theirs, connection.challenge);
  return write_all(connection.socket, own) ? Progress::proven : Progress::strange;
}

// The first connection that has proven itself; those that never will are turned away on the way to it.
std::optional<OpenFile> Listener::proven_one() {
  for (auto connection = unproven_.begin(); connection != unproven_.end();) {
    const Progress progress = advance(*connection);
    if (progress == Progress::waits) {
      ++connection;
      continue;
    }
    OpenFile socket = std::move(connection->socket);
    connection = unproven_.erase(connection);
    if (progress == Progress::proven) return socket;
    ++turned_away_;
  }
  return std::nullopt;
}

std::optional<OpenFile> Listener::take() {
  // Those who are in already come before those who would take their place.
  if (std::optional<OpenFile> proven = proven_one()) return proven;
  int accepted = 0;
  while (accepted < kAcceptsAtOnce && accept_one()) ++accepted;
  return accepted > 0 ? proven_one() : std::nullopt;
}

void Listener::close() {
  socket_.close();
  turned_away_ += static_cast<long>(unproven_.size());
  unproven_.clear();
}

OpenFile connect_to(const std::string& host, int port, const std::string& own_address, const Secret& secret,
                    steady_clock::time_point deadline) {
  std::string reason, told = "there was no time to try";
  for (bool first = true; steady_clock::now() < deadline; first = false) {
    const Addresses found = addresses_of(host, port, 0, reason);
    for (const addrinfo* to = found.get(); to != nullptr; to = to->ai_next) {
      // One host may have several addresses, and not all may answer.
      const auto try_until = std::min(deadline, steady_clock::now() + 3 * Handshake::time);
      OpenFile made = connected(*to, own_address, try_until, reason);
      if (!made) continue;
      set(made, IPPROTO_TCP, TCP_NODELAY);
      if (shake_hands(made, secret, try_until, reason)) return made;
    }
    if (first || steady_clock::now() < deadline) told = reason;  // a try that the deadline cut off found nothing out
    std::this_thread::sleep_for(std::min<steady_clock::duration>(
        kBetweenTries, std::max(deadline - steady_clock::now(), steady_clock::duration::zero())));
  }
  throw RunError(
      fmt::format("rank 0 was not found at {}:{}: {}; see that it runs there, that every rank has the same "
                  "secret, and that nothing between the hosts keeps them apart",
                  visible_name(host), port, told));
}

}  // namespace muonwalk::sim
