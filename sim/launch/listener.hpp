#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "sim/transport/secret.hpp"
#include "src/io/open_file.hpp"

namespace muonwalk::sim {

/// What a handshake over TCP is: the listener sends a challenge of 32 bytes, whoever connects answers with a challenge
/// of its own and a proof for the listener's, and the listener answers with its proof. Neither proof can be replayed or
/// reflected (proof_of): both challenges and who is who go into it.
struct Handshake {
  static constexpr std::size_t most_bytes = 64;           ///< read from anybody before the proof
  static constexpr std::chrono::milliseconds time{1000};  ///< the time that a connection has to send its proof
  static constexpr std::size_t most_unproven = 64;  ///< connections at a time without proof; the oldest makes room
  /// How long a connection has before it makes room for others, which wait in the kernel meanwhile: enough for the
  /// answer of a rank, so that a flood of strangers keeps none out.
  static constexpr std::chrono::milliseconds least_time{20};
};

/// Where the ranks of a launch meet: a TCP port that lets in those who know the secret and turns away all others. It
/// never waits, and what a stranger sends decides over no memory and no time.
class Listener {
 public:
  /// Listens at this numeric address and no other; port 0 takes any. Throws UsageError where it can't.
  Listener(const std::string& address, int port, const Secret& secret);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// The port.
  int port() const { return port_; }

  /// Adds what poll() should wait for, so that a caller that has other things to wait for knows when to call `take`.
  void add_to(std::vector<pollfd>& polled) const;

  /// Does what can be done without waiting, and returns a connection that has proven itself, or none. To be called
  /// until it returns none, and every `least_time` or so.
  std::optional<OpenFile> take();

  /// How many have come that did not know the secret, or did not say so in time.
  long turned_away() const { return turned_away_; }

  /// Everybody is there: the port is closed, and who has not proven itself is turned away.
  void close();

 private:
  struct Unproven;
  enum class Progress { waits, proven, strange };

  bool has_room() const;
  bool accept_one();
  std::optional<OpenFile> proven_one();
  Progress advance(Unproven& connection);

  Secret secret_;
  OpenFile socket_;
  int port_ = 0;
  long turned_away_ = 0;
  std::list<Unproven> unproven_;  // the oldest first
};

/// Connects to a listener and proves itself, again and again until `deadline`: the listener may not be there yet, and
/// may have dropped this connection among many of strangers. `own_address` is the numeric address that the connection
/// leaves from; empty for any. Reads at most 64 bytes from whoever is there before its proof. Throws RunError, with
/// what happened last, when the deadline has passed.
OpenFile connect_to(const std::string& host, int port, const std::string& own_address, const Secret& secret,
                    std::chrono::steady_clock::time_point deadline);

}  // namespace muonwalk::sim
