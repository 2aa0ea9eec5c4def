#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

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

/// A figure that was published, the same way of counting done again, and what should have been counted.
struct PublishedFigure {
  std::string what;                 ///< "communication, Muon"
  std::string unit;                 ///< "ms", "calls", "%", "" for a ratio
  std::optional<double> published;  ///< nothing: only what it should be compared with was published
  std::optional<double> recounted;  ///< from the files, counted as it was published
  int decimals = 0;                 ///< digits after the point that were published
  double corrected = 0;             ///< from the files, counted as it should be
  int corrected_decimals = 0;       ///< digits after the point that are shown of it

  /// The recounted figure, rounded to the digits that were published, is the published one. True where none was
  /// published.
  bool found_again() const;
};

/// Figures that belong together, how they were counted, and one sentence on what differs.
struct PublishedClaim {
  std::string title;                     ///< what the figures are of
  std::string counted;                   ///< how the published figures were counted
  std::string corrected;                 ///< what the corrected ones count
  std::string differs;                   ///< one sentence
  std::vector<PublishedFigure> figures;  ///< in the order in which they are shown
  std::vector<std::string> evidence;     ///< lines that show what the published count is made of
};

/// The figures of "Distributed Muon: Field Notes & Reproducibility Artifacts" (Jen Wei, 2025), counted again from its
/// traces: Muon's and AdamW's, and optionally the asynchronous variants of the two.
std::vector<PublishedClaim> published_claims(const std::vector<TraceFile>& traces);

/// How many figures were published, and how many of them came out again.
struct FoundAgain {
  int published = 0;  ///< figures
  int found = 0;      ///< of these
};

/// Counts them over all claims.
FoundAgain found_again(const std::vector<PublishedClaim>& claims);

}  // namespace muonwalk::sim
