#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lessons/lesson_18_read_a_trace/two_readings.hpp"
#include "src/layout/grid.hpp"

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

/// What is said of one of several runs that are compared.
struct ComparedRun {
  std::string optimizer;            ///< The optimizer that it trained with, by its name.
  Grid grid;                        ///< The grid of its ranks.
  RunTotals totals;                 ///< What its trace comes to.
  std::int64_t state_elements = 0;  ///< Optimizer state on all ranks together.
  std::string measured;             ///< The two_readings of its trace, which differ from run to run.
};

/// `file` is the trace of the run, and `summary` what was read out of it.
ComparedRun compared_run(const std::string& optimizer, const Grid& grid, const TraceFile& file, const Summary& summary,
                         std::int64_t state_elements);

/// What runs say about the published claims: Muon on dp 2 × tp 2, and on dp 4, against AdamW on dp 4. Nothing where one
/// of them was not made.
OwnRuns own_runs(const std::vector<ComparedRun>& runs);

/// A row per run: calls, events that bear their names, bytes sent, and elements of optimizer state, on all ranks. After
/// them published_claims_table.
std::string compared_runs_text(const std::vector<ComparedRun>& runs);

}  // namespace muonwalk::sim
