#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analyser/event.hpp"

namespace muonwalk::sim {

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

/// The published traces: two of a step of Muon and of AdamW, and optionally the asynchronous variants.
struct PublishedTraces {
  /// A step of each optimizer.
  /// @{
  TraceFile muon, adamw;
  /// @}
  /// The two asynchronous variants are there.
  bool has_async = false;
  /// The asynchronous variants of the two; empty unless has_async.
  /// @{
  TraceFile muon_async, adamw_async;
  /// @}
};

/// The figures of "Distributed Muon: Field Notes & Reproducibility Artifacts" (Jen Wei, 2025), counted again from its
/// traces.
std::vector<PublishedClaim> published_claims(const PublishedTraces& traces);

/// How many figures were published, and how many of them came out again.
struct FoundAgain {
  int published = 0;  ///< figures
  int found = 0;      ///< of these
};

/// Counts them over all claims.
FoundAgain found_again(const std::vector<PublishedClaim>& claims);

}  // namespace muonwalk::sim
