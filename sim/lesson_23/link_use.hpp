#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// On which of two hosts, 0 or 1, each rank lives.
using HostOfRank = std::vector<int>;

/// Shares out the ranks of a grid by halves: with "tp-inside" in rank order, so that a TP group stays on a host where
/// dp is even; with "tp-across" by their coordinate in tp. Throws UsageError for another word, for pp, and where the
/// halves would not be equal.
HostOfRank place_on_hosts(const Grid& grid, const std::string& placement);

/// What one phase of a step hands to the link between two hosts.
struct PhaseOnLink {
  Phase phase;                  ///< which one
  std::int64_t bytes_out[2]{};  ///< that the ranks of each host send to those of the other
  std::int64_t messages = 0;    ///< both ways
  int waits = 0;                ///< calls that cross the link, of the rank that has most of them
};

/// A step, phase by phase in the order of their first calls; phases that never cross the link are left out.
struct LinkUse {
  std::vector<PhaseOnLink> phases;  ///< those that do
  /// The sum over them.
  PhaseOnLink total() const;
};

/// A fold over the plans of all ranks: every all_gather sends a rank's elements to each other rank of its group, every
/// reduce_scatter sends each other rank its piece; what goes to the other host is counted. Throws std::logic_error for
/// any other call.
LinkUse link_use(const std::vector<Plan>& plans, const HostOfRank& host_of);

/// A link between two hosts, the same both ways at once.
struct Link {
  double bits_per_second = 0;  ///< 0: any number
  double delay_ms = 0;         ///< from one end to the other
};

/// What a phase takes at least, in milliseconds: every call that crosses waits for the delay once, and all bytes of a
/// host share the rate.
double least_ms(const PhaseOnLink& phase, const Link& link);

/// Reads "1gbit", "10ms" or both, "1gbit,10ms"; kbit, mbit and gbit are powers of 1000, as tc(8) has them. Throws
/// UsageError.
Link parse_link(const std::string& text);

}  // namespace muonwalk::sim
