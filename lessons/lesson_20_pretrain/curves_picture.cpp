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

Axes axes_of(const std::vector<LossCurve>& curves) {
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
      include(each.other);
    }
  }
  axes.lowest = std::floor(lowest * 2) / 2;
  axes.highest = std::max(axes.lowest + 0.5, std::ceil(highest * 2) / 2);
  return axes;
}

using Points = std::vector<std::pair<int, float>>;

std::string polyline(const Axes& axes, const Points& points, const std::string& classes, const std::string& words) {
  std::string path;
  for (const auto& [step, loss] : points) path += fmt::format("{:.1f},{:.1f} ", axes.x(step), axes.y(loss));
  return fmt::format("<polyline class=\"{}\" points=\"{}\"><title>{}</title></polyline>\n", classes, path,
                     xml_text(words));
}

std::string grid_lines(const Axes& axes) {
  std::string svg;
  for (double loss = axes.lowest; loss <= axes.highest + 0.01; loss += 0.5) {
    svg += svg_line(kPlotLeft, axes.y(loss), kPlotRight, axes.y(loss), "class=\"mw-rule\"");
    svg += svg_text(kPlotLeft - 36, axes.y(loss) + 4, "mw-quiet", fmt::format("{:.1f}", loss));
  }
  for (int i = 0; i <= 4; ++i) {
    const int step = axes.steps * i / 4;
    svg += svg_text(axes.x(step), kPlotBottom + 20, "mw-quiet mw-middle", std::to_string(step));
  }
  svg += svg_text((kPlotLeft + kPlotRight) / 2, kPlotBottom + 42, "mw-prose mw-quiet mw-middle", "steps");
  svg += svg_text(kPlotLeft - 40, kPlotTop - 12, "mw-prose mw-quiet", "loss per token");
  return svg;
}

// Where names go behind the ends of curves, so that none covers another.
class EndNames {
 public:
  void add(double y, const std::string& classes, const std::string& words) { names_.push_back({y, classes, words}); }
  std::string svg() {
    std::sort(names_.begin(), names_.end(), [](const Name& a, const Name& b) { return a.y < b.y; });
    std::string all;
    double free = 0;
    for (const Name& name : names_) {
      const double y = std::max(name.y + 4, free);
      all += svg_text(kPlotRight + 8, y, name.classes, name.words);
      free = y + 15;
    }
    return all;
  }

 private:
  struct Name {
    double y;
    std::string classes, words;
  };
  std::vector<Name> names_;
};

}  // namespace

std::string curves_svg(const std::string& title, const std::vector<LossCurve>& curves) {
  if (curves.empty() || curves[0].training.empty() || curves[0].validations.empty())
    throw std::invalid_argument("a picture of losses needs at least one run with a step and a validation");
  SvgStyle style(".mw-losses", 12, 17, 13);
  style.colour(".mw-rule", "stroke", kPadding);
  style.rule("polyline", "fill:none;stroke-linejoin:round");
  style.rule(".mw-training", "stroke-width:1;opacity:.55");
  style.rule(".mw-held-out", "stroke-width:2.5");
  style.rule(".mw-other", "stroke-width:2;stroke-dasharray:6 4");
  const Axes axes = axes_of(curves);
  std::string body = svg_text(24, 38, "mw-title", title);
  body +=
      svg_text(24, 60, "mw-prose mw-quiet", "thin: each batch · thick: held-out text · dashed: text of another kind");
  body += grid_lines(axes);
  std::string description;
  EndNames names;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const LossCurve& curve = curves[i];
    const std::string colour = fmt::format("mw-run{}", i);
    style.colour("polyline." + colour, "stroke", rank_colour(static_cast<int>(i) + 2));
    style.colour("text." + colour, "fill", rank_colour(static_cast<int>(i) + 2));
    Points training, held_out, other;
    for (std::size_t step = 0; step < curve.training.size(); ++step)
      training.emplace_back(static_cast<int>(step), curve.training[step]);
    for (const Validation& each : curve.validations) {
      held_out.emplace_back(each.step, each.held_out);
      other.emplace_back(each.step, each.other);
    }
    const std::string name = visible_name(curve.name);
    body += polyline(axes, training, colour + " mw-training", name + ", each batch");
    body += polyline(axes, held_out, colour + " mw-held-out", name + ", held-out text");
    body += polyline(axes, other, colour + " mw-other", name + ", text of another kind");
    names.add(axes.y(held_out.back().second), colour + " mw-strong", name);
    names.add(axes.y(other.back().second), colour, name + ", other");
    description +=
        fmt::format("{}{}: after {} {:.2f} on held-out text and {:.2f} on other text.", description.empty() ? "" : " ",
                    name, count_text(held_out.back().first, "step"), held_out.back().second, other.back().second);
  }
  body += names.svg();
  return svg_page("mw-losses", kLossPageWidth, kLossPageHeight, title, description, style, body);
}

}  // namespace muonwalk::sim
