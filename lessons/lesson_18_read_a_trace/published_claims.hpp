#pragma once

#include <optional>
#include <string>
#include <vector>

namespace muonwalk::sim {

/// A figure that was published together with its traces, and what we have read in them.
struct ReadAgain {
  const char* words;      ///< What it is of: "calls of collectives, Muon and AdamW".
  const char* published;  ///< As it was published: "40 and 110". The first number is what the verdict is on.
  const char* again;      ///< As `muonwalk-trace published` counts it: "10 and 25".
  double nearness;        ///< Half of the last digit that was published.
  const char* rule;       ///< How it was counted this time.
  bool of_bytes = false;  ///< Our own runs say the same of bytes.

  bool holds() const;
};

/// The figures of "Distributed Muon: Field Notes & Reproducibility Artifacts" (Jen Wei, 2025). A test reads them again
/// where the traces are.
extern const std::vector<ReadAgain> kReadAgain;

/// What runs of our own say about the published claims; nothing where they were not made.
struct OwnRuns {
  std::optional<double> bytes_ratio;       ///< Bytes sent by all ranks: Muon on dp 2 × tp 2 / AdamW on dp 4.
  std::optional<double> equal_grid_ratio;  ///< Bytes sent by all ranks, both on dp 4: Muon / AdamW.
  std::optional<double> state_ratio;       ///< Elements of state per weight: Muon / AdamW.
};

/// Which of the published claims hold, as a table: the claim, the published figure, the figure as it was read again,
/// the verdict, and below them the rule by which it was read. Then the source.
std::vector<std::string> published_claims_table(const OwnRuns& own);

}  // namespace muonwalk::sim
