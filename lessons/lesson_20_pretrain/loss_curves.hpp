#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/layout/grid.hpp"

namespace muonwalk::sim {

/// What a model makes of text that it was not trained on, behind a step. Losses are means per token, in natural units.
struct Validation {
  int step = 0;        ///< after how many steps; 0: before the first
  float held_out = 0;  ///< Its loss on the end of the text.
  float other = 0;     ///< Its loss on another text.
  /// Where somebody asked (measure_inside): the largest score that a query gives a key before the softmax, over all
  /// layers and heads, and the root mean square of what the last layer gives.
  /// @{
  float largest_score = 0;
  float output_rms = 0;
  /// @}
};

/// The losses of one run.
struct LossCurve {
  std::string name;                     ///< The names of the optimizers.
  std::vector<float> training;          ///< [step − 1], of its batch, before the step
  std::vector<Validation> validations;  ///< They stand in the order of their steps.
};

/// What is told of several numbers of one kind, such as the losses of runs with different seeds.
struct Spread {
  double mean = 0;      ///< Their mean.
  double smallest = 0;  ///< The smallest of them.
  double largest = 0;   ///< The largest of them.
};

/// Of at least one number.
Spread spread_of(const std::vector<double>& numbers);

/// What a curve is smoothed by before anybody asks when it reaches a loss: the mean of this many steps' losses, its own
/// and those before it, because batches differ.
constexpr int kSmoothedSteps = 10;

/// A curve as pandas' ewm(alpha).mean() smooths it, which is how the thread of the proof of concept does: each loss
/// counts 1 − alpha times as much as the one after it. Where a curve falls evenly, that moves it by (1 − alpha) / alpha
/// steps, as if it learned so much later.
std::vector<float> smoothed_exponentially(const std::vector<float>& losses, double alpha);

/// *Leading steps* as that thread counts them, at a step of Muon's run: the first step in which `first` has a lower
/// loss than `second` has in step `step`, less `step`, over `step`: (AdamW − Muon) / Muon. Nothing: `first` never has.
std::optional<double> leading_steps(const std::vector<float>& first, const std::vector<float>& second, int step);

/// At which step the smoothed training loss is first at or below `loss`; nothing: never. Steps before
/// number kSmoothedSteps have no mean.
std::optional<double> reached_in_training(const LossCurve& curve, float loss);

/// At which step the held-out loss is first at or below `loss`, if it falls in straight lines between validations.
std::optional<double> reached_held_out(const LossCurve& curve, float loss);

/// The losses on held-out text that are worth comparing, multiples of 0.05, largest first: the lowest that all runs
/// come to, 0.1, 0.2, 0.4 and 0.8 above it, and, where it is another, the lowest that any run comes to.
std::vector<float> loss_levels(const std::vector<LossCurve>& curves);

/// Losses of all runs side by side, a row for each of up to a dozen validations, the first and the last included:
/// training loss (smoothed over as many steps as there are, up to kSmoothedSteps), held-out and other.
std::string loss_table(const std::vector<LossCurve>& curves);

/// When two runs reach each of some losses, a row per loss, for the training text and the held-out one, and the lead:
/// how many steps of the first run one of the second is worth, and how many per cent more that is.
std::string lead_table(const LossCurve& first, const LossCurve& second);

/// leading_steps at some steps of the second run, a row for each way to smooth both curves: not at all, the mean of
/// kSmoothedSteps, and exponentially. Below it, both curves as bars, by mean and exponentially: how late the one is.
std::string leading_steps_table(const LossCurve& first, const LossCurve& second);

/// Held-out losses of runs with different seeds, [seed][optimizer]: mean, smallest and largest behind some steps; and
/// the same of the lead to each loss that all of them come to.
std::string seeds_table(const std::vector<std::vector<LossCurve>>& seeds);

/// The largest scores and the outputs behind each of some steps, side by side.
std::string inside_table(const std::vector<LossCurve>& curves);

/// A line of --grids: the last losses of each run on a grid, and whether all of its bits are those of the reference.
std::string grid_line(const Grid& grid, const std::vector<LossCurve>& curves, bool equal);

/// What losses are smoothed with where they are smoothed exponentially: about as in the thread (0.005), but
/// for a run that is as much shorter.
constexpr double kSmoothing = 0.05;

}  // namespace muonwalk::sim
