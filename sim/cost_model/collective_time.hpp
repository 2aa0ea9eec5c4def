#pragma once

#include <string>

#include "sim/cost_model/cluster.hpp"
#include "src/comm/call.hpp"

namespace muonwalk::sim {

/// How the ranks of a group carry out a collective.
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

  /// Both together.
  double total() const { return latency + transfer; }
};

/// A collective of `ranks` ranks over one kind of link. `bytes` is the size of the whole buffer: what every rank has
/// before a reduce-scatter or an all-reduce and after an all-gather, what each sends in all in an all-to-all, its own
/// part included, and the size of the message in a send or broadcast. Formulas as in Thakur, Rabenseifner and Gropp,
/// "Optimization of Collective Communication Operations in MPICH", 2005. 0 for one rank. Throws std::invalid_argument
/// for an algorithm that does not have this collective, for two_level, which needs a cluster, and for ranks or bytes
/// below 1 or 0.
CollectiveSeconds collective_seconds(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes, int ranks,
                                     const LinkCost& link);

/// The same in a cluster, for a group that lies in it as `spread` says: two_level goes through the levels one by one,
/// every other algorithm runs at the pace of the slowest level that it crosses. Where a level has measured bandwidths,
/// they are taken; where `sharing` groups leave a unit at once, each has its part of the links.
CollectiveSeconds collective_seconds(CollectiveKind kind, CollectiveAlgorithm algorithm, double bytes,
                                     const Cluster& cluster, const GroupSpread& spread);

}  // namespace muonwalk::sim
