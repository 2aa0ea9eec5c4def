#pragma once

#include <array>
#include <string>

#include "sim/analyser/event.hpp"

namespace muonwalk::sim {

/// What adding up by name gives, which is how traces are often read: all events whose name holds some text, whatever
/// they stand for.
struct NameMatch {
  NameTally all;                                  ///< the events of every class together
  std::array<NameTally, kEventClasses> of_class;  ///< [EventClass]

  /// Those of one class.
  const NameTally& of(EventClass event_class) const { return of_class[static_cast<std::size_t>(event_class)]; }
};

/// All ranks of the file. Names are compared in lower case and without underscores and hyphens, so "all_gather" finds
/// "allgather_", "all-gather" and "AllGather", too.
NameMatch match_names(const TraceFile& file, const std::string& text);

/// The same for one rank (an index into TraceFile::ranks). Events that are in no figure are not kept with their rank,
/// so they are not in it.
NameMatch match_names(const TraceFile& file, const std::string& text, int rank);

}  // namespace muonwalk::sim
