#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "lessons/lesson_20_pretrain/loss_curves.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

// Lengths in the picture's own units; the viewer scales them.
constexpr double kLossPageWidth = 960;
constexpr double kLossPageHeight = 540;
constexpr double kPlotLeft = 64;
constexpr double kPlotRight = kLossPageWidth - 150;  // names of the curves stand behind it
constexpr double kPlotTop = 96;
constexpr double kPlotBottom = kLossPageHeight - 54;

// What the axes are about.
struct Axes {
  int steps = 1;
  double lowest = 0, highest = 1;

  double x(int step) const { return kPlotLeft + (kPlotRight - kPlotLeft) * step / steps; }
  double y(double loss) const { return kPlotBottom - (kPlotBottom - kPlotTop) * (loss - lowest) / (highest - lowest); }
};

Axes axes_of(const std::vector<LossCurve>& curves, bool other = true) {
  Axes axes;
  double lowest = curves[0].training[0], highest = lowest;
  const auto include = [&](float loss) {
    lowest = std::min(lowest, static_cast<double>(loss));
    highest = std::max(highest, static_cast<double>(loss));
  };
  for (const LossCurve& curve : curves) {
    axes.steps = std::max(axes.steps, static_cast<int>(curve.training.size()));
    for (const float loss : curve.training) include(loss);
    for (const Validation& each : curve.validations) {
      include(each.held_out);
      if (other) include(each.other);
    }
  }
  axes.lowest = std::floor(lowest * 2) / 2;
  axes.highest = std::max(axes.lowest + 0.5, std::ceil(highest * 2) / 2);
  return axes;
}

void draw_grid(SvgPicture& picture, const Axes& axes) {
  for (double loss = axes.lowest; loss <= axes.highest + 0.01; loss += 0.5) {
    picture.line(kPlotLeft, axes.y(loss), kPlotRight, axes.y(loss), "mw-rule");
    picture.text(kPlotLeft - 36, axes.y(loss) + 4, "mw-quiet", fmt::format("{:.1f}", loss));
  }
  for (int i = 0; i <= 4; ++i) {
    const int step = axes.steps * i / 4;
    picture.text(axes.x(step), kPlotBottom + 20, "mw-quiet mw-middle", std::to_string(step));
  }
  picture.text((kPlotLeft + kPlotRight) / 2, kPlotBottom + 42, "mw-prose mw-quiet mw-middle", "steps");
  picture.text(kPlotLeft - 40, kPlotTop - 12, "mw-prose mw-quiet", "loss per token");
}

// A point for the loss of every step.
std::vector<std::pair<double, double>> points_of(const std::vector<float>& losses, const Axes& axes) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t step = 0; step < losses.size(); ++step)
    points.emplace_back(axes.x(static_cast<int>(step)), axes.y(static_cast<double>(losses[step])));
  return points;
}

// What stands behind the end of a curve.
struct EndName {
  double y;
  std::string classes, words;
};

// None of them covers another.
void draw_names(SvgPicture& picture, std::vector<EndName> names) {
  std::sort(names.begin(), names.end(), [](const EndName& a, const EndName& b) { return a.y < b.y; });
  double free = 0;
  for (const EndName& name : names) {
    const double y = std::max(name.y + 4, free);
    picture.text(kPlotRight + 8, y, name.classes, name.words);
    free = y + 15;
  }
}

}  // namespace

std::string curves_svg(const std::string& title, const std::vector<LossCurve>& curves) {
  if (curves.empty() || curves[0].training.empty() || curves[0].validations.empty())
    throw std::invalid_argument("a picture of losses needs at least one run with a step and a validation");
  const Axes axes = axes_of(curves);
  SvgPicture picture(kLossPageWidth, title, "thin: each batch · thick: held-out text · dashed: text of another kind");
  draw_grid(picture, axes);
  std::vector<EndName> names;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const LossCurve& curve = curves[i];
    const std::size_t colour = (i + 2) % kColours;
    const std::string line = fmt::format("mw-o{}", colour), letters = fmt::format("mw-r{}", colour);
    std::vector<std::pair<double, double>> held_out, other;
    for (const Validation& each : curve.validations) {
      held_out.emplace_back(axes.x(each.step), axes.y(each.held_out));
      other.emplace_back(axes.x(each.step), axes.y(each.other));
    }
    const std::string name = visible_name(curve.name);
    picture.path(points_of(curve.training, axes), line + " mw-faint", name + ", each batch");
    picture.path(held_out, line + " mw-wide", name + ", held-out text");
    picture.path(other, line + " mw-wide mw-dashed", name + ", text of another kind");
    names.push_back({held_out.back().second, letters + " mw-strong", name});
    names.push_back({other.back().second, letters, name + ", other"});
    const Validation& last = curve.validations.back();
    picture.say(fmt::format("{}: after {} {:.2f} on held-out text and {:.2f} on other text.", name,
                            count_text(last.step, "step"), last.held_out, last.other));
  }
  draw_names(picture, std::move(names));
  return picture.svg(kLossPageHeight);
}

std::string smoothing_svg(const std::vector<LossCurve>& curves) {
  if (curves.empty() || curves[0].training.empty())
    throw std::invalid_argument("a picture of smoothed losses needs at least one run with a step");
  Axes axes = axes_of(curves, /*other=*/false);
  SvgPicture picture(kLossPageWidth, "What smoothing does to a curve",
                     fmt::format("thin: each batch · thick: the mean of {} steps around it · dashed: exponentially "
                                 "smoothed, α = {}, which lags by {:.0f} steps",
                                 kSmoothedSteps, kSmoothing, (1 - kSmoothing) / kSmoothing));
  draw_grid(picture, axes);
  std::vector<EndName> names;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const LossCurve& curve = curves[i];
    const std::size_t colour = (i + 2) % kColours;
    const std::string line = fmt::format("mw-o{}", colour), letters = fmt::format("mw-r{}", colour);
    const std::vector<float> late = smoothed_exponentially(curve.training, kSmoothing);
    const std::size_t half = kSmoothedSteps / 2;
    std::vector<std::pair<double, double>> means;
    for (std::size_t step = half; step + half <= curve.training.size(); ++step) {
      double sum = 0;
      for (std::size_t s = step - half; s < step + half; ++s) sum += static_cast<double>(curve.training[s]);
      means.emplace_back(axes.x(static_cast<int>(step)), axes.y(sum / kSmoothedSteps));
    }
    const std::string name = visible_name(curve.name);
    picture.path(points_of(curve.training, axes), line + " mw-faint", name + ", each batch");
    picture.path(means, line + " mw-wide", name + ", mean of the steps around");
    picture.path(points_of(late, axes), line + " mw-wide mw-dashed", name + ", exponentially smoothed");
    names.push_back({axes.y(static_cast<double>(late.back())), letters, name + ", late"});
    if (!means.empty()) names.push_back({means.back().second, letters + " mw-strong", name});
    picture.say(
        fmt::format("{}: the last batch has a loss of {:.2f}, the exponentially smoothed curve is still at {:.2f}.",
                    name, curve.training.back(), late.back()));
  }
  draw_names(picture, std::move(names));
  return picture.svg(kLossPageHeight);
}

}  // namespace muonwalk::sim
