#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/classroom/comparison.hpp"
#include "sim/replay/run_trace.hpp"
#include "src/layout/grid.hpp"
#include "tools/trace/summary.hpp"

namespace muonwalk::sim {

/// The calls of a run by rank, collective, element type and group, and the bytes that the rank handed to the transport
/// in them: "rank 0, all_gather of float32 in [0, 1]: calls" and "…: bytes". A line of a summary that does not say its
/// bytes has calls alone.
NamedNumbers call_counts(const Summary& summary);

/// Calls and bytes from the ledgers, which transports kept while they sent, without a trace: what a trace must say.
NamedNumbers ledger_counts(const RunTrace& run);

/// Writes a run as --trace does and reads it back as muonwalk-trace does: what any reader of the file would see.
TraceFile written_and_read(const RunTrace& run);

/// What adding up by name makes of a rank's collectives: all events whose name holds the name of one that the rank
/// called, ranges and operators as well as the calls themselves. Slices of computation that bear the name of a range
/// are not in it: how many there are depends on the clock.
NameTally tally_by_name(const TraceFile& file, const RankSummary& rank);

/// Takes all those events for calls, in every line of every rank: what one gets who forgets that ranges have names.
void take_names_for_calls(const std::vector<TraceFile>& files, Summary& summary);

/// The figures of the first rank as they are often read, and beside them as they should be: a row each, as a table.
/// `files` are what `summary` was made from, a file per rank or one for all.
std::vector<std::string> two_readings(const std::vector<TraceFile>& files, const Summary& summary);

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

/// What is said of one of several runs that are compared, on all ranks that were traced.
struct ComparedRun {
  std::string optimizer;            ///< The optimizer that it trained with, by its name.
  Grid grid;                        ///< The grid of its ranks.
  std::int64_t state_elements = 0;  ///< Optimizer state on all ranks together.
  std::int64_t calls = 0;           ///< Calls of collectives, each once.
  std::int64_t events_by_name = 0;  ///< The events that tally_by_name finds.
  std::int64_t sent_bytes = 0;      ///< The bytes that were sent, where the trace says them.
  std::string measured = {};        ///< The two_readings of its trace, which differ from run to run.
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
