#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/trace/published.hpp"

namespace muonwalk::sim {

/// The names of the published files: Muon, AdamW, and the asynchronous variants of both.
extern const std::vector<std::string> kPublishedFiles;

/// Where the right-hand side of the table of claims comes from.
struct ReadAgain {
  std::vector<PublishedClaim> claims;  ///< The figures, corrected.
  /// 16 hex digits that tell the four files that they were read from: the 64-bit XXH3 of their bytes, one after the
  /// other.
  std::string digest;
  std::string folder;  ///< Where those lie; empty: we read them, and wrote down what they say.
};
/// What we have read in the published traces: the figures that the table of claims needs. A test reads them again where
/// the traces are.
ReadAgain read_by_us();
/// What is read in a folder now. Throws UsageError, one sentence, when the folder or a file is not there, or a file
/// can't be read.
ReadAgain read_in(const std::string& folder);

/// What runs of our own say about the published claims; nothing where they were not made.
struct OwnRuns {
  std::optional<double> bytes_ratio;       ///< Bytes sent by all ranks: Muon on dp 2 × tp 2 / AdamW on dp 4.
  std::optional<double> equal_grid_ratio;  ///< Bytes sent by all ranks, both on dp 4: Muon / AdamW.
  std::optional<double> state_ratio;       ///< Elements of state per weight: Muon / AdamW.
};

/// Which of the claims of "Distributed Muon: Field Notes & Reproducibility Artifacts" (Jen Wei, 2025) hold, as a table:
/// the claim, the published figure, the figure as it was read again, the verdict, and below them the rule by which it
/// was read. Then the source.
std::vector<std::string> published_claims_table(const ReadAgain& read, const OwnRuns& own);

}  // namespace muonwalk::sim
