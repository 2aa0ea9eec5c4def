#pragma once

#include <string>
#include <vector>

#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// One row of a table of training runs on nodes of eight H100s.
struct PublishedRun {
  std::string row;                 ///< The line as it stands in the file.
  std::string model;               ///< A name of model_shape.
  TrainingLayout layout;           ///< The columns nodes, dp, tp, pp, zero, mbs and grad_acc.
  bool measured = false;           ///< It ran, and gave numbers; only where the table has results.
  double tokens_per_second = 0;    ///< Per GPU; 0 where not measured.
  double memory_gibibytes = 0;     ///< Memory of rank 0; 0 where not measured.
  std::vector<std::string> flags;  ///< What the run is not to be used for.

  bool flagged(const std::string& flag) const;
  /// Measured, and not flagged stall, gqa or batch_mismatch: what a model of time is held to.
  bool clean() const;
};

/// A table of runs.
struct PublishedRuns {
  std::string header;
  bool has_results = false;  ///< The table has results, and they were read.
  std::vector<PublishedRun> runs;
};

/// Reads a table in CSV, whose first line names the columns: model, nodes, dp, tp, pp, zero, mbs and grad_acc, in any
/// order, among others. Throws UsageError, one sentence with the number of the line, for a file that can't be read or
/// has no such column or no row, for a row of another length, a model that is not known, a number that is not whole or
/// not in range, and for a layout that does not fill its nodes.
/// @{

/// Reads layouts alone: all other columns are left as they are, whatever they hold.
PublishedRuns read_layouts(const std::string& path);
/// Reads results too, where the table has the columns status (measured or nan), tokens_per_s (of all GPUs) and
/// memory_gb (GiB); and flags, where it has that.
PublishedRuns read_runs(const std::string& path);
/// @}

/// The runs that the program carries: 2,061 of the Ultra-Scale Playbook's (tools/scale/records).
PublishedRuns carried_runs();

/// What the cost model says about a run. There are numbers also where it does not fit.
struct RunPrediction {
  double tokens_per_second = 0;  ///< Per GPU.
  double memory_gibibytes = 0;   ///< Memory of rank 0, which is in the first stage: what the records show.
  bool fits = false;             ///< Every stage fits into the card, and the layout can run at all.
};

/// Tokens per second and GPU that are predicted of a run, without its memory.
double predicted_speed(const PublishedRun& run, const TrainingSoftware& software);

/// Predicts a run on the cluster "h100-efa".
RunPrediction predict_run(const PublishedRun& run, const TrainingSoftware& software = software_of("nanotron"));

/// The lines of the table, with three more columns at the end: pred_tokens_per_s_per_gpu, pred_memory_gb
/// (GiB) and pred_fits (0 or 1).
std::vector<std::string> predicted_rows(const PublishedRuns& runs);

}  // namespace muonwalk::sim
