#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/cost_model/published_runs.hpp"

namespace muonwalk::sim {

/// A run that has results, beside what was predicted for it.
struct RunOutcome {
  const PublishedRun* run = nullptr;  ///< in the table that it was read from
  RunPrediction prediction;           ///< by the software that was asked
};

/// Predicts all runs of a table that has results, except for those flagged batch_mismatch: theirs are other runs.
std::vector<RunOutcome> outcomes_of(const PublishedRuns& runs, const TrainingSoftware& software);

/// Those that `wanted` says yes to.
std::vector<RunOutcome> chosen(const std::vector<RunOutcome>& outcomes,
                               const std::function<bool(const PublishedRun&)>& wanted);

/// How far off speeds and memory are.
struct RateScores {
  std::size_t runs = 0;       ///< that were measured and are clean
  double error = 0;           ///< median of |predicted / measured − 1|, of tokens per second
  double within_quarter = 0;  ///< share of runs with at most 25 % of that
  double rank = 0;            ///< Spearman's rank correlation of the layouts of a (model, nodes), mean over all such
  double rank_median = 0;     ///< the same, median
  double picked = 0;  ///< speed of the layout that is predicted fastest over the fastest, mean over (model, nodes)
  double memory_error = 0;  ///< median of |predicted / measured − 1|, of memory
};

/// Of the clean ones among them. Layouts are ranked where a (model, nodes) has three, and picked where it has two. All
/// 0 where there are none.
RateScores rate_scores(const std::vector<RunOutcome>& outcomes);

/// How often "fits" is right.
struct FitScores {
  std::size_t ran = 0;     ///< runs with numbers
  std::size_t failed = 0;  ///< runs without
  double found = 0;        ///< share of those that ran that were said to fit
  double refused = 0;      ///< share of those that failed that were said not to

  /// The mean of both.
  double balanced_accuracy() const { return (found + refused) / 2; }
};

/// Of all of them but those flagged repeat, of which one ran and one failed with the same layout.
FitScores fit_scores(const std::vector<RunOutcome>& outcomes);

/// Spearman's rank correlation, ties at their mean rank; 0 where one side does not vary. Both have the same length.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

/// One line of the targets, beside what came out.
struct ValidationTarget {
  const char* what;  ///< "median error of tokens per second"
  double reached;    ///< a share
  double wanted;     ///< at most, or at least
  bool at_most;      ///< which of the two

  /// Whether it is reached.
  bool met() const { return at_most ? reached <= wanted : reached >= wanted; }
};

/// The targets of validation. "fits" is judged on all runs but those that failed with memory to spare: 1B, ZeRO-0, DP
/// and PP above 1, on 2 to 8 nodes.
std::vector<ValidationTarget> validation_targets(const std::vector<RunOutcome>& outcomes);

/// They as a table.
std::string target_table(const std::vector<RunOutcome>& outcomes);

/// All scores as tables of at most 100 columns: targets, by model, by nodes, the fitted constants; and with `held_out`
/// those of a model, or of a number of nodes, that constants were not fitted to. Throws UsageError where the table has
/// no results.
std::string validation_text(const PublishedRuns& runs, bool held_out);

}  // namespace muonwalk::sim
