#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analyser/published.hpp"

namespace muonwalk::sim {

/// The names of the published files: Muon, AdamW, and the asynchronous variants of both.
extern const std::vector<std::string> kPublishedFiles;

/// Reads the four published traces from a folder, in the order in which published_claims takes them. Throws UsageError,
/// one sentence, when the folder or a file is not there, or a file can't be read.
std::vector<TraceFile> read_published_folder(const std::string& folder);

/// What runs of our own say about the published claims; nothing where they were not made.
struct OwnRuns {
  std::optional<double> bytes_ratio;  ///< sent by all ranks: Muon on dp 2 × tp 2 / AdamW on dp 4
  std::optional<double> state_ratio;  ///< elements of state a weight: Muon / AdamW
};

/// Which of the claims of "Distributed Muon: Field Notes & Reproducibility Artifacts" (Jen Wei, 2025) hold, as a table:
/// the claim, the published figure, what is measured, and the verdict. `claims` are what published_claims made of the
/// real traces; without any, the table says what would tell.
std::vector<std::string> published_claims_table(const std::vector<PublishedClaim>& claims, const OwnRuns& own);

}  // namespace muonwalk::sim
