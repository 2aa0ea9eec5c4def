#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "src/comm/backend.hpp"

namespace muonwalk::sim {

/// How fast a rank's link to the others is made to be. Each direction has the whole bandwidth.
struct LinkSpeed {
  double gigabytes_per_second = 0;  ///< 10⁹ bytes per second, or bytes per nanosecond
  double latency_us = 0;            ///< Microseconds from one end to the other.
};

/// Reads "GBps,us": "0.05,200" is 0.05 GB/s and 200 µs. Throws UsageError, naming `option`, where the text is not two
/// numbers, the bandwidth is not from 0.0001 to 1,000,000 GB/s, or the latency is not from 0 to 1,000,000 µs.
LinkSpeed parse_link_speed(const std::string& option, const std::string& text);

/// "0.05 GB/s, 200 µs".
std::string link_speed_text(const LinkSpeed& link);

/// One direction of a link: what is put on it goes one after the other, each for its bytes over the bandwidth, and
/// arrives a latency later. Latencies overlap. Times are nanoseconds on any clock.
class LinkDirection {
 public:
  /// Of this speed.
  explicit LinkDirection(const LinkSpeed& link) : link_(link) {}

  /// When a message that is put on the link at `now_ns` has left (its sender is done with it) and has arrived.
  struct Times {
    std::int64_t left_ns = 0;     ///< On the clock of `now_ns`.
    std::int64_t arrived_ns = 0;  ///< A latency later.
  };
  /// Puts a message of this size on the link.
  Times put(std::int64_t now_ns, std::int64_t bytes);

 private:
  LinkSpeed link_;
  std::int64_t free_ns_ = 0;  // when the last one has left
};

/// The link of one rank, out and in, which all of its groups share. A rank does one thing at a time: no lock.
struct RankLink {
  /// Both directions of this speed.
  explicit RankLink(const LinkSpeed& link) : out(link), in(link) {}
  LinkDirection out;  ///< Bytes that the rank sends.
  LinkDirection in;   ///< Bytes that it receives.
};

/// A backend as slow as a link, over one that is faster: the same messages, bytes, headers and errors, but no wait
/// returns before the message would have left (of a send) or arrived (of a receive). Until then the rank sleeps, so no
/// processor time is taken from those that compute; ranks that are fibers sleep on their virtual clock. A message
/// counts from the moment in which it was posted here: when its other end was posted, no rank knows. Where ranks post
/// at the same time, as in a gather, that is the same. What an Exchanger moves is not slowed.
std::unique_ptr<Backend> over_slow_link(std::unique_ptr<Backend> backend, std::shared_ptr<RankLink> link);

}  // namespace muonwalk::sim
