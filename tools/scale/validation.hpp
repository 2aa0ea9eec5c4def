#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tools/scale/published_runs.hpp"
#include "tools/scale/training_software.hpp"

namespace muonwalk::sim {

/// A run that has results, beside what was predicted for it.
struct RunOutcome {
  const PublishedRun* run = nullptr;  ///< A row of the table that was read.
  RunPrediction prediction;
};

/// Predicts all runs of a table that has results, except for those flagged batch_mismatch: theirs are other runs.
std::vector<RunOutcome> outcomes_of(const PublishedRuns& runs, const TrainingSoftware& software);

/// The outcomes that `wanted` says yes to.
std::vector<RunOutcome> chosen(const std::vector<RunOutcome>& outcomes,
                               const std::function<bool(const PublishedRun&)>& wanted);

/// How far off speeds and memory are, and how often "fits" is right.
struct Scores {
  std::size_t clean = 0;      ///< How many runs were measured and are clean: the next six are about these.
  double error = 0;           ///< The median of |predicted / measured − 1| of tokens per second.
  double within_quarter = 0;  ///< The share of runs whose error is at most 25 %.
  double rank = 0;            ///< Spearman's correlation of the layouts of a (model, nodes), mean over all such.
  double rank_median = 0;     ///< The median of these correlations.
  double picked = 0;  ///< Speed of the layout that is predicted fastest over the fastest, mean over (model, nodes).
  double memory_error = 0;  ///< The median of |predicted / measured − 1| of memory.

  std::size_t ran = 0;     ///< Runs with numbers, whether they are clean or not.
  std::size_t failed = 0;  ///< Runs without.
  double found = 0;        ///< The share of those that ran that were said to fit.
  double refused = 0;      ///< The share of those that failed that were said not to.

  double balanced_accuracy() const { return (found + refused) / 2; }
};

/// The scores of these runs. Layouts are ranked where a (model, nodes) has three, and picked where it has two. Runs
/// that are flagged repeat say nothing of what fits: one ran and one failed with one layout. What lacks runs is 0.
Scores scores_of(const std::vector<RunOutcome>& outcomes);

/// Runs that a set of constants was not fitted to: all of a model, or all on a number of nodes.
enum class HeldOut { size, nodes };

/// The outcomes of the runs that the program carries, each with constants that were fitted to the runs
/// of other sizes, or on other numbers of nodes. Those fits are in software.json. Where the runs that slow_path_nodes
/// was read off are left out, there is no such number.
std::vector<RunOutcome> held_out_outcomes(const PublishedRuns& carried, HeldOut what);

/// Spearman's rank correlation, ties at their mean rank; 0 where one side does not vary. Both have the same length.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

/// A target, beside what came out.
struct ValidationTarget {
  const char* what;  ///< "median error of tokens per second"
  double reached;
  double wanted;  ///< At most or at least this.
  bool at_most;
  bool refitted = true;  ///< It rests on the six constants of time, which held_out_outcomes has others of.

  bool met() const { return at_most ? reached <= wanted : reached >= wanted; }
};

/// The targets of validation. "fits" is judged on all runs but those that failed with memory to spare: 1B, ZeRO-0, DP
/// and PP above 1, on 2 to 8 nodes.
std::vector<ValidationTarget> validation_targets(const std::vector<RunOutcome>& outcomes);

/// The targets as a table. Of the runs that the program carries what counts is what comes out with a size, or a number
/// of nodes, left out of the fit; of others there is one column.
std::string target_table(const PublishedRuns& runs, const std::vector<RunOutcome>& outcomes, bool carried);

/// All scores as tables of at most 100 columns: targets, by model, by nodes, the fitted constants; and with `held_out`
/// those of a model, or of a number of nodes, that constants were not fitted to. Throws UsageError where the table has
/// no results.
std::string validation_text(const PublishedRuns& runs, bool held_out);

}  // namespace muonwalk::sim
