#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tools/trace/event.hpp"

namespace muonwalk::sim {

/// What adding up by name gives, which is how traces are often read: all events whose name holds some text.
struct NameMatch {
  NameTally all;                                  ///< The events of every class together.
  std::array<NameTally, kEventClasses> of_class;  ///< The events of each class, by its number.

  const NameTally& of(EventClass event_class) const { return of_class[static_cast<std::size_t>(event_class)]; }
};

/// Adds up all ranks of the file, or one (an index into TraceFile::ranks). Names are compared in lower case and without
/// underscores and hyphens, so "all_gather" finds "allgather_", "all-gather" and "AllGather", too. Events that are in
/// no figure are not kept with their rank, so they are in the sum of all ranks only.
NameMatch match_names(const TraceFile& file, const std::string& text, std::optional<int> rank = std::nullopt);

/// A figure that was published, the same way of counting done again, and what should have been counted.
struct PublishedFigure {
  std::string what;                 ///< The name: "Muon, time".
  std::string unit;                 ///< "ms", "%", "" for a count or a ratio.
  std::optional<double> published;  ///< Nothing where only what it should be compared with was published.
  std::optional<double> recounted;  ///< From the files, counted as it was published.
  int decimals = 0;                 ///< How many digits after the point were published.
  double corrected = 0;             ///< From the files, counted as it should be.
  int corrected_decimals = 0;       ///< How many digits after the point are shown of that.

  /// Tells whether the recounted figure, rounded to the digits that were published, is the published one. True where
  /// none was published.
  bool found_again() const;
};

/// Figures that belong together, how they were counted, and one sentence on what differs.
struct PublishedClaim {
  std::string title;
  std::string counted;                   ///< How the published figures were counted.
  std::string corrected;                 ///< What the corrected ones count.
  std::string differs;                   ///< One sentence.
  std::vector<PublishedFigure> figures;  ///< In the order in which they are shown.
  std::vector<std::string> evidence;     ///< Lines that show what the published count is made of.
};

/// Counts the figures of "Distributed Muon: Field Notes & Reproducibility Artifacts" (Jen Wei, 2025) again from its
/// traces: Muon's and AdamW's, and optionally the asynchronous variants of the two.
std::vector<PublishedClaim> published_claims(const std::vector<TraceFile>& traces);

/// How many figures were published, and how many of them came out again, over all claims.
struct FoundAgain {
  int published = 0, found = 0;
};
FoundAgain found_again(const std::vector<PublishedClaim>& claims);

}  // namespace muonwalk::sim
