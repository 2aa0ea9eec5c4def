#pragma once

#include <string>
#include <vector>

#include "lessons/lesson_18_read_a_trace/published_claims.hpp"
#include "lessons/lesson_18_read_a_trace/two_readings.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::sim {

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

/// Lines as one text.
std::string joined(const std::vector<std::string>& lines);

}  // namespace muonwalk::sim
