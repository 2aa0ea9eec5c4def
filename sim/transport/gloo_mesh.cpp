#include "sim/transport/gloo_mesh.hpp"

#include <fcntl.h>
#include <gloo/common/error.h>
#include <gloo/config.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include "src/errors.hpp"

namespace muonwalk::sim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

// How long one connection may take: a part of the time for all, so that ranks can connect anew where somebody came and
// went in between, and one of them waits for what can't come any more.
milliseconds for_one_connection(milliseconds timeout) {
  return std::max(timeout / 4, std::min(timeout, milliseconds(2000)));
}

// Gloo's own limit while two ranks connect. Debian's version multiplies it by five.
milliseconds connect_limit(milliseconds timeout) {
#ifdef GLOO_SHARED_STORE
  return timeout;
#else
  return std::max(timeout / 5, milliseconds(1));
#endif
}

// A context whose pairs are connected one by one, so that one that fails does not keep the others from it.
class MeshContext : public gloo::Context {
 public:
  MeshContext(int its_rank, int its_size, const std::shared_ptr<gloo::transport::Device>& device, milliseconds timeout)
      : gloo::Context(its_rank, its_size) {
    device_ = device;
    transportContext_ = device_->createContext(its_rank, its_size);
    const milliseconds limit = connect_limit(for_one_connection(timeout));
    transportContext_->setTimeout(limit);
    setTimeout(limit);
  }
  // Opens a port for `peer` and returns its address.
  std::vector<char> listen_for(int peer) { return transportContext_->createPair(peer)->address().bytes(); }
};

// Where one connection begins and ends, as one of the two sees it. Both are empty where there is none, and kUnseen
// where there is one on a system that does not say more.
struct Ends {
  std::string local, peer;
};
constexpr const char* kUnseen = "?";

// How long what is connected may take to prove itself.
constexpr auto kProofLimit = std::chrono::seconds(5);

// Somebody who is not a rank holds the connection of `rank` that was meant for `instead_of`.
struct Stranger {
  int rank, instead_of;
};

// What to do about it, behind a sentence that says so.
constexpr const char* kEndTheStranger =
    "; nothing of the run was sent to it; end that process, or run where ranks get a network of their own";

// One try of one rank to connect with all others.
class Attempt {
 public:
  Attempt(const std::shared_ptr<gloo::transport::Device>& device, std::string group, int number, int rank, int size,
          KeyStore& store, Clock::time_point deadline, milliseconds timeout)
      : group_(std::move(group)),
        number_(number),
        rank_(rank),
        size_(size),
        store_(store),
        deadline_(deadline),
        timeout_(timeout),
        context_(std::make_shared<MeshContext>(rank, size, device, timeout)),
        goes_to_(static_cast<std::size_t>(size)) {}

  // Opens a port for every peer and connects with those that can be connected with.
  void connect() {
    std::vector<char> addresses;
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const std::vector<char> address = context_->listen_for(peer);
      addresses.insert(addresses.end(), address.begin(), address.end());
    }
    set("address", addresses);
    // Nobody connects before all are about to: a rank that fails until then is waited for on the key store, where it
    // can be told of, and not inside Gloo, where it can't.
    std::vector<std::vector<char>> address_of_peer;
    for (int peer = 0; peer < size_; ++peer)
      address_of_peer.push_back(peer == rank_ ? addresses : get("address", peer));
    set("ready", {});
    for (int peer = 0; peer < size_; ++peer) get("ready", peer);
    // Until a pair connects it listens, also where it is the one that is going to connect. If somebody has come by
    // then, Gloo drops them without a word and keeps what it has read of theirs as the peer's beginning.
    const std::vector<TcpSocket> before = connected_tcp_sockets();
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      const std::vector<char>& of_peer = address_of_peer[static_cast<std::size_t>(peer)];
      const auto bytes = static_cast<std::ptrdiff_t>(of_peer.size()) / (size_ - 1);
      const auto at = of_peer.begin() + bytes * (rank_ > peer ? rank_ - 1 : rank_);  // no rank has one for itself
      const std::vector<char> theirs(at, at + bytes);
      if (has_caller(peer, theirs, before)) continue;
      const std::vector<char> own = context_->getPair(peer)->address().bytes();
      if (connects_to(own, theirs))
        goes_to_[static_cast<std::size_t>(peer)] = address_text(theirs.data(), theirs.size());
      try {
        context_->getPair(peer)->connect(theirs);
        connected_.push_back(peer);
      } catch (const std::exception& error) {
        if (no_more_files(error)) throw;
      }
    }
  }

  // Compares what all ranks see; all of them come to the same answer.
  std::optional<Stranger> find_stranger() {
    look_at_sockets();
    std::string seen;
    for (const Ends& ends : ends_) seen += ends.local + ' ' + ends.peer + '\n';
    set("ends", std::vector<char>(seen.begin(), seen.end()));
    std::vector<std::vector<Ends>> ends;
    for (int rank = 0; rank < size_; ++rank) ends.push_back(rank == rank_ ? ends_ : ends_of(rank));
    for (int a = 0; a < size_; ++a)
      for (int b = 0; b < a; ++b) {
        const Ends& of_a = ends[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
        const Ends& of_b = ends[static_cast<std::size_t>(b)][static_cast<std::size_t>(a)];
        if (of_a.local.empty() || of_b.local.empty() || of_a.local != of_b.peer || of_a.peer != of_b.local)
          return of_b.local.empty() ? Stranger{a, b} : Stranger{b, a};
      }
    return std::nullopt;
  }

  // Both ends of every connection prove that they know the secret. True when all ranks are content; where this one is
  // not, `failure` says why.
  bool prove(const Secret& secret) {
    try {
      exchange_proofs(secret);
    } catch (const StrangerError& error) {
      failure_ = error.what();
    } catch (const gloo::Exception&) {
      failure_ = "what is connected to " + name_of(rank_) + " does not prove that it belongs to this run";
    }
    set("content", {failure_.empty() ? '1' : '0'});
    bool all = failure_.empty();
    for (int rank = 0; rank < size_; ++rank) all = (rank == rank_ || get("content", rank)[0] == '1') && all;
    return all;
  }

  GlooMesh mesh() const { return {context_, sockets_}; }
  const std::string& failure() const { return failure_; }

  // Closed, not only dropped: a stranger's connection shall not linger.
  void drop() {
    for (int peer = 0; peer < size_; ++peer)
      if (peer != rank_) context_->getPair(peer)->close();
  }

 private:
  std::string name_of(int rank) const { return "rank " + std::to_string(rank) + " of group " + group_; }

  // True when somebody is connected to the port that was opened for a peer that does not connect to it: this rank does.
  bool has_caller(int peer, const std::vector<char>& theirs, const std::vector<TcpSocket>& sockets) {
    const std::vector<char> own = context_->getPair(peer)->address().bytes();
    const std::string local = address_text(own.data(), own.size());
    return connects_to(own, theirs) &&
           std::any_of(sockets.begin(), sockets.end(), [&](const TcpSocket& s) { return s.local == local; });
  }

  void exchange_proofs(const Secret& secret) {
    constexpr std::uint64_t challenge_slot = std::uint64_t{0x44} << 56, proof_slot = std::uint64_t{0x45} << 56;
    struct Talk {
      int peer;
      Challenge own_challenge, their_challenge;
      Proof own_proof, their_proof;
      Buffer sent[2], got[2];
    };
    std::vector<Talk> talks(static_cast<std::size_t>(size_ - 1));
    proofs_by_ = std::min(deadline_, Clock::now() + kProofLimit);
    int peer = 0;
    for (Talk& talk : talks) {
      talk.peer = peer == rank_ ? ++peer : peer;
      ++peer;
      talk.own_challenge = random_bytes();
      talk.got[0] = receive(talk.peer, challenge_slot, talk.their_challenge);
      talk.got[1] = receive(talk.peer, proof_slot, talk.their_proof);
      talk.sent[0] = send(talk.peer, challenge_slot, talk.own_challenge);
    }
    for (Talk& talk : talks) {
      talk.got[0]->waitRecv(time_left(proofs_by_));
      talk.own_proof = proof_of(secret, group_, rank_, talk.peer, talk.their_challenge, talk.own_challenge);
      talk.sent[1] = send(talk.peer, proof_slot, talk.own_proof);
    }
    for (Talk& talk : talks) {
      talk.got[1]->waitRecv(time_left(proofs_by_));
      for (const Buffer& sent : talk.sent) sent->waitSend(time_left(proofs_by_));
      if (!proves(talk.their_proof, secret, group_, talk.peer, rank_, talk.own_challenge, talk.their_challenge))
        throw StrangerError("a process that is not a rank of this run, and does not know its secret, is connected to " +
                            name_of(rank_) + " in place of rank " + std::to_string(talk.peer));
    }
  }

  std::string key(const char* what, int rank) const {
    return group_ + '/' + std::to_string(number_) + '/' + what + '/' + std::to_string(rank);
  }
  void set(const char* what, const std::vector<char>& value) { store_.set(key(what, rank_), value); }
  std::vector<char> get(const char* what, int rank) {
    try {
      return store_.get(key(what, rank), time_left(deadline_));
    } catch (const TimeoutError&) {
      // All of them came once, and had to connect anew because they saw somebody else.
      if (number_ > 1)
        throw StrangerError("a process that is not a rank got between the ranks of group " + group_ +
                            ", and they could not connect anew within " + std::to_string(timeout_.count()) + " ms" +
                            kEndTheStranger);
      throw RunError("the group " + group_ + " can't be connected: its rank " + std::to_string(rank) +
                     " did not come within " + std::to_string(timeout_.count()) +
                     " ms; it has died, hangs, or was never started");
    }
  }

  std::vector<Ends> ends_of(int rank) {
    const std::vector<char> value = get("ends", rank);
    std::istringstream lines(std::string(value.begin(), value.end()));
    std::vector<Ends> ends;
    for (std::string line; std::getline(lines, line);)
      ends.push_back({line.substr(0, line.find(' ')), line.substr(line.find(' ') + 1)});
    ends.resize(static_cast<std::size_t>(size_));
    return ends;
  }

  // Finds the socket of every pair. Where this rank listened, its own end is the port that it had opened, and that
  // pair's alone; where it connected, the system may have given several connections one port, but to one peer each.
  void look_at_sockets() {
    ends_.assign(static_cast<std::size_t>(size_), Ends());
    const std::vector<TcpSocket> all = connected_tcp_sockets();
    for (const int peer : connected_) {
      const std::vector<char> address = context_->getPair(peer)->address().bytes();
      const std::string local = address_text(address.data(), address.size());
      const std::string& other_end = goes_to_[static_cast<std::size_t>(peer)];
      const auto socket = std::find_if(all.begin(), all.end(), [&](const TcpSocket& s) {
        return s.local == local && (other_end.empty() || s.peer == other_end);
      });
      if (socket == all.end() && !all.empty()) continue;  // closed again by whoever had made it
      ends_[static_cast<std::size_t>(peer)] = all.empty() ? Ends{kUnseen, kUnseen} : Ends{socket->local, socket->peer};
      if (!all.empty()) sockets_.push_back(*socket);
    }
  }

  // Challenges and proofs are of one type.
  Buffer receive(int peer, std::uint64_t slot, Proof& bytes) {
    Buffer buffer = context_->createUnboundBuffer(bytes.data(), bytes.size());
    buffer->recv(peer, slot);
    return buffer;
  }
  Buffer send(int peer, std::uint64_t slot, Proof& bytes) {
    Buffer buffer = context_->createUnboundBuffer(bytes.data(), bytes.size());
    buffer->send(peer, slot);
    return buffer;
  }

  static milliseconds time_left(Clock::time_point until) {
    // Gloo takes 0 for "no limit".
    return std::max(std::chrono::duration_cast<milliseconds>(until - Clock::now()), milliseconds(1));
  }

  std::string group_;
  int number_;
  int rank_;
  int size_;
  KeyStore& store_;
  Clock::time_point deadline_;
  Clock::time_point proofs_by_;
  milliseconds timeout_;
  std::shared_ptr<MeshContext> context_;
  std::vector<int> connected_;        // peers with which Gloo says that it is connected
  std::vector<std::string> goes_to_;  // by peer: the address that this rank connects to; empty where it listens
  std::vector<Ends> ends_;            // by peer
  std::vector<TcpSocket> sockets_;
  std::string failure_;
};

}  // namespace

bool no_more_files(const std::exception& error) {
  if (std::strstr(error.what(), std::strerror(EMFILE)) != nullptr) return true;
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (file >= 0) ::close(file);
  return file < 0 && (errno == EMFILE || errno == ENFILE);
}

GlooMesh connect_mesh(const std::shared_ptr<gloo::transport::Device>& device, const std::string& group, int rank,
                      int size, KeyStore& store, const Secret& secret, milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  std::string failure;
  for (int number = 1; number <= kMeshAttempts; ++number) {
    Attempt attempt(device, group, number, rank, size, store, deadline, timeout);
    attempt.connect();
    const std::optional<Stranger> stranger = attempt.find_stranger();
    if (!stranger && attempt.prove(secret)) return attempt.mesh();
    attempt.drop();
    if (stranger)
      failure = "a process that is not a rank is connected to rank " + std::to_string(stranger->rank) + " of group " +
                group + " in place of rank " + std::to_string(stranger->instead_of);
    else
      failure = attempt.failure().empty() ? "a process that is not a rank got between the ranks of group " + group
                                          : attempt.failure();
  }
  throw StrangerError(failure + ", the last of " + std::to_string(kMeshAttempts) +
                      " times that the ranks tried to connect" + kEndTheStranger);
}

}  // namespace muonwalk::sim
