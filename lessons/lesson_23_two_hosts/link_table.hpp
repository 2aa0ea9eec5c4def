#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/optim/plan.hpp"

namespace muonwalk::sim {

/// What one phase of a step hands to the link between two hosts.
struct PhaseOnLink {
  Phase phase;
  std::int64_t bytes_out[2]{};  ///< What the ranks of each host send to those of the other.
  int waits = 0;                ///< The calls that cross the link, of the rank that has most of them.
};

/// A step, phase by phase.
struct LinkUse {
  std::vector<PhaseOnLink> phases;
  /// The entry of a phase; a new one, at the end, where it is the first time.
  PhaseOnLink& of(Phase phase);
  /// The sum over all phases.
  PhaseOnLink total() const;
};

/// A link between two hosts, the same both ways at once, with the name of its column: "1 Gbit/s".
struct Link {
  std::string name;
  double bits_per_second = 0;  ///< 0 stands for any number.
  double delay_ms = 0;         ///< How long it takes from one end to the other.
};

/// What a phase takes at least, in milliseconds: every call that crosses waits for the delay once, and all bytes of a
/// host share the rate.
double least_ms(const PhaseOnLink& phase, const Link& link);

/// Reads "1gbit", "10ms" or both, "1gbit,10ms"; kbit, mbit and gbit are powers of 1000, as tc(8) has them. The name is
/// `name`, or the text where that is empty. Throws UsageError.
Link parse_link(const std::string& text, const std::string& name = "");

/// What is put on the link, and what it takes at least over each of `links`: a line for each phase of each of `uses`
/// that crosses, under its name, and one for all of them; without `by_phase`, a line for each use.
std::string link_table(const std::string& of_what, const std::vector<std::pair<std::string, LinkUse>>& uses,
                       const std::vector<Link>& links, bool by_phase);

}  // namespace muonwalk::sim
