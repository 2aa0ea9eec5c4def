#pragma once

#include <optional>

#include "src/comm/call.hpp"
#include "tools/scale/cluster.hpp"

namespace muonwalk::sim {

/// The time of a collective, in its two parts.
struct CollectiveSeconds {
  double latency = 0;   ///< The α terms, which grow with the ranks.
  double transfer = 0;  ///< The β terms.
  /// A bandwidth was not measured for this number of units of the level below.
  std::optional<Outside> outside;

  double total() const { return latency + transfer; }
};

/// What a collective takes for a group that lies in a cluster as `spread` says: n is `bytes`, p the ranks of the group.
///
/// | collective | bytes are those of | over one level |
/// |---|---|---|
/// | reduce_scatter, all_gather | the whole buffer | (p − 1) α + n (p − 1)/p β |
/// | all_reduce | the whole buffer | twice that |
/// | all_to_all | all that a rank sends, its own part included | (p − 1) α + n (p − 1)/p β |
/// | send, recv | the message | α + n β |
///
/// Over several levels a reduce-scatter goes from the inside out, with a smaller buffer each time, as a ring in each
/// level; an all-gather goes back, and an all-reduce does both. An all-to-all sends to one rank after the other, over
/// each level what is for ranks on its other side. A message goes between two ranks that are as far apart as they can
/// be. The ranks of a group use all links that are theirs; where `sharing` groups leave a unit at once, each has its
/// part of the links. (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH",
/// 2005.)
///
/// Where a level has a measured bus bandwidth for the collective, that is taken. It was measured with everything inside
/// of the level, so the bytes of the levels inside count with it; their latencies are still added, of which the
/// measured figure has a part in it as well.
///
/// One rank takes no time. Throws std::invalid_argument for other collectives and for bytes below 0 or not finite.
CollectiveSeconds collective_seconds(CollectiveKind kind, double bytes, const Cluster& cluster,
                                     const GroupSpread& spread);

}  // namespace muonwalk::sim
