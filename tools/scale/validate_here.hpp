#pragma once

#include <string>
#include <vector>

#include "src/layout/grid.hpp"
#include "tools/scale/machine_costs.hpp"

namespace muonwalk::sim {

/// What is validated on the machine at hand.
struct HereSettings {
  std::vector<int> ranks = {2, 4, 8, 16};  ///< Even numbers: the steps are taken on dp ranks / 2 × tp 2.
  int steps = 5;                           ///< The least number of each kind; the quickest one counts.
  double seconds = 1;                      ///< Further steps are taken for as long as this.
  bool small = false;                      ///< Lesson 09 has its small matrices (`--small`).
  WorldKind world = WorldKind::processes;  ///< Ranks are processes over Gloo, or threads over memory.
};

/// One kind of step on one grid: what was predicted of it, and what it did.
struct StepHere {
  std::string what;  ///< "lesson 09, Muon"
  Grid grid;
  double predicted_seconds = 0;  ///< The sum of plan_time.
  double measured_seconds = 0;   ///< From the first rank's beginning to the last one's end, in the quickest step.
  /// The share of min(cores, ranks) that the ranks had in that step; the rest went to other jobs, or to waiting.
  double processor_share = 0;
  bool extrapolated = false;      ///< A figure of the prediction lies outside of what was measured.
  long long predicted_bytes = 0;  ///< What all ranks send in one step, by plan.
  long long counted_bytes = 0;    ///< What they send, as they counted it.
  std::string difference;  ///< The first line of a rank's ledger that is not as planned, as a sentence, or nothing.

  /// Predicted over measured, minus 1.
  double error() const { return predicted_seconds / measured_seconds - 1; }
  /// Every line of every rank's ledger is as it was predicted.
  bool bytes_equal() const { return difference.empty() && predicted_bytes == counted_bytes; }
};

/// Takes the step of lesson 09 and the four of lesson 13, of the sizes that these lessons have by default, on each
/// number of ranks, and predicts them with `machine`. The four of lesson 13 take one step of Newton–Schulz. Starts
/// processes unless asked for threads, so the caller must have no threads then. Throws UsageError for a number of ranks
/// that is not even, or from 2 to 64, and RunError where a rank fails.
std::vector<StepHere> validate_here(const MachineCosts& machine, const HereSettings& settings = {});

/// The steps as a table of at most 100 columns: predicted and measured milliseconds, the error, the share of the cores
/// that the ranks had, and the bytes that they sent, with a mark that says whether these are as predicted. Below it
/// what is not, a line for figures that are extrapolated, the median of the errors, and that of the steps in which no
/// other job had much of the machine.
std::string here_table(const std::vector<StepHere>& steps);

}  // namespace muonwalk::sim
