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
};

/// The losses of one run.
struct LossCurve {
  std::string name;                     ///< The names of the optimizers.
  std::vector<float> training;          ///< [step − 1], of its batch, before the step
  std::vector<Validation> validations;  ///< They stand in the order of their steps.
};

/// What a curve is smoothed by before anybody asks when it reaches a loss: the mean of this many steps' losses, its own
/// and those before it, because batches differ.
constexpr int kSmoothedSteps = 10;

/// At which step the smoothed training loss is first at or below `loss`; nothing: never. Steps before
/// number kSmoothedSteps have no mean.
std::optional<double> reached_in_training(const LossCurve& curve, float loss);

/// At which step the held-out loss is first at or below `loss`. Between two validations the loss is taken to fall in a
/// straight line.
std::optional<double> reached_held_out(const LossCurve& curve, float loss);

/// The losses on held-out text that are worth comparing, multiples of 0.05, largest first: the lowest that all runs
/// come to, 0.1, 0.2, 0.4 and 0.8 above it, and, where it is another, the lowest that any run comes to.
std::vector<float> loss_levels(const std::vector<LossCurve>& curves);

/// Losses of all runs side by side, a row for each of up to a dozen validations, the first and the last included:
/// training loss (smoothed over as many steps as there are, up to kSmoothedSteps), held-out and other.
std::string loss_table(const std::vector<LossCurve>& curves);

/// When two runs reach each of some losses, a row per loss, for the training text and the held-out one, and the lead:
/// how many steps of the first run one of the second is worth.
std::string lead_table(const LossCurve& first, const LossCurve& second);

/// A line of --grids: the last losses of each run on a grid, and whether all of its bits are those of the reference.
std::string grid_line(const Grid& grid, const std::vector<LossCurve>& curves, bool equal);

/// The losses of both runs over their steps as an SVG picture, in colours for light and dark pages.
std::string curves_svg(const std::string& title, const std::vector<LossCurve>& curves);

}  // namespace muonwalk::sim
