#pragma once

#include <string>

#include "sim/cost_model/cluster.hpp"
#include "src/comm/call.hpp"

namespace muonwalk::sim {

/// How the ranks of a group carry out a collective. p: ranks, n: bytes of the whole buffer, L = ⌈log₂ p⌉. Which
/// collectives an algorithm has, and what they take over one kind of link:
///
/// | algorithm | reduce-scatter, all-gather | all-reduce | all-to-all | broadcast |
/// |---|---|---|---|---|
/// | ring | (p − 1) α + n (p − 1)/p β | twice that | – | (p − 1) α + n β |
/// | tree | – | 2 L α + 2 n β | – | L α + n β |
/// | halving | L α + n (p − 1)/p β | twice that | – | – |
/// | pairwise | (p − 1) α + n (p − 1)/p β | twice that | (p − 1) α + n (p − 1)/p β | – |
/// | direct | as pairwise | as pairwise | as pairwise | (p − 1) α + (p − 1) n β |
///
/// Ring, halving and pairwise as in Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
/// Operations in MPICH", 2005. The broadcast of a ring and both trees cut the message into pieces that follow each
/// other, so that the bytes count once, as in NCCL (Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth
/// broadcast, reduction and scan", 2009). A barrier is L α and a send, or the recv at its other end, α + n β in all of
/// them.
enum class CollectiveAlgorithm {
  ring,       ///< every rank sends to the next one, ranks − 1 times
  tree,       ///< up a binary tree and down again: all-reduce and broadcast only
  halving,    ///< recursive halving and doubling: log₂(ranks) messages; ranks a power of two
  pairwise,   ///< every rank sends to every other one, one after the other
  two_level,  ///< within the nodes, then between them, level by level
  direct      ///< what Muonwalk's own ranks do: all messages posted at once (src/comm/predicted_traffic.hpp)
};

/// "ring", "tree", "halving", "pairwise", "two-level", "direct".
const char* algorithm_name(CollectiveAlgorithm algorithm);
/// The opposite of algorithm_name; throws UsageError for any other word.
CollectiveAlgorithm parse_algorithm(const std::string& word);

/// The one that whatever an optimizer's step sends is taken to go by, so that times can be compared: two_level, and
/// pairwise for what is not for everybody, all_to_all and recv.
CollectiveAlgorithm algorithm_of_a_step(CollectiveKind kind);

/// The α and β of a link: what a message costs however small it is, and what each byte costs.
struct LinkCost {
  double latency_seconds = 0;   ///< α
  double seconds_per_byte = 0;  ///< β
};

/// The time of a collective, in its two parts.
struct CollectiveSeconds {
  double latency = 0;   ///< the α terms, which grow with the ranks
  double transfer = 0;  ///< the β terms
  /// A figure that went into it lies outside the range in which it was measured.
  bool extrapolated = false;
  double read_at = 0;     ///< where extrapolated: how many units of the level below take part …
  double nearest_at = 0;  ///< … and the measured number that is nearest

  /// Both together.
  double total() const { return latency + transfer; }
};

/// A collective of `ranks` ranks over one kind of link. `bytes` is the size of the whole buffer: what every rank has
/// before a reduce-scatter or an all-reduce and after an all-gather, what each sends in all in an all-to-all, its own
/// part included, and the size of the message in a send or broadcast. 0 for one rank. Throws std::invalid_argument, a
/// sentence, for an algorithm that does not have this collective, for two_level, which needs a cluster, for a wait,
/// which sends nothing, for ranks below 1, and for bytes that are below 0 or not finite.
CollectiveSeconds collective_seconds(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes, int ranks,
                                     const LinkCost& link);

/// The same in a cluster, for a group that lies in it as `spread` says.
///
/// A ring passes every level that it crosses, so its hops have the latency of the level that each of them goes over, as
/// NCCL counts them, and its bytes the pace of the slowest one; a tree likewise, with the depth that it has in each
/// level. In a unit of the level below, the ranks of a group use all links that are theirs; where `sharing` groups
/// leave a unit at once, each has its part of the links. halving, pairwise and direct send the bytes over each level
/// that are for ranks on its other side, one level after the other; direct sends over all levels at once, so the
/// slowest counts.
///
/// two_level goes level by level: a reduce-scatter from the inside out, with a smaller buffer each time, an all-gather
/// back, an all-reduce both, an all-to-all and a broadcast once through all levels, each level as a ring (all-to-all:
/// pairwise).
///
/// Where a level has a measured bus bandwidth for this collective, that is taken. It was measured with everything
/// inside of the level, so two_level has the bytes of the levels inside counted with it; their latencies are still
/// added, of which the measured figure has a part in it as well.
CollectiveSeconds collective_seconds(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                                     const Cluster& cluster, const GroupSpread& spread);

}  // namespace muonwalk::sim
