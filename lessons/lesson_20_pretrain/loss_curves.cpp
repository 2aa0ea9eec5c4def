#include "lessons/lesson_20_pretrain/loss_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/text/table.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr std::size_t kTableRows = 6;  // besides the one before the first step

// The mean of the training losses of step `step` and those before it, up to kSmoothedSteps of them.
float smoothed(const LossCurve& curve, int step) {
  const int first = std::max(1, step - kSmoothedSteps + 1);
  float sum = 0;
  for (int s = first; s <= step; ++s) sum += curve.training[static_cast<std::size_t>(s - 1)];
  return sum / static_cast<float>(step - first + 1);
}

std::string step_text(const std::optional<double>& step) { return step ? fmt::format("{:.1f}", *step) : "never"; }

std::string ratio_text(const std::optional<double>& first, const std::optional<double>& second) {
  return first && second && *second > 0 ? fmt::format("{:.2f}", *first / *second) : "-";
}

}  // namespace

std::optional<double> reached_in_training(const LossCurve& curve, float loss) {
  for (int step = kSmoothedSteps; step <= static_cast<int>(curve.training.size()); ++step)
    if (smoothed(curve, step) <= loss) return step;
  return std::nullopt;
}

std::optional<double> reached_held_out(const LossCurve& curve, float loss) {
  const Validation* before = nullptr;
  for (const Validation& each : curve.validations) {
    if (each.held_out <= loss) {
      if (before == nullptr) return each.step;
      const double fallen = static_cast<double>(before->held_out) - static_cast<double>(loss);
      const double falls = static_cast<double>(before->held_out) - static_cast<double>(each.held_out);
      return before->step + (each.step - before->step) * fallen / falls;
    }
    before = &each;
  }
  return std::nullopt;
}

std::vector<float> loss_levels(const std::vector<LossCurve>& curves) {
  constexpr int kPerUnit = 20;  // multiples of 0.05
  int of_all = 0, of_any = 0;   // the lowest, in them
  bool first = true;
  for (const LossCurve& curve : curves) {
    float lowest = curve.validations.at(0).held_out;
    for (const Validation& each : curve.validations) lowest = std::min(lowest, each.held_out);
    const int level = static_cast<int>(std::ceil(lowest * kPerUnit));
    of_all = first ? level : std::max(of_all, level);
    of_any = first ? level : std::min(of_any, level);
    first = false;
  }
  std::vector<float> levels;
  for (const int above : {16, 8, 4, 2, 0}) levels.push_back(static_cast<float>(of_all + above) / kPerUnit);
  if (of_any < of_all) levels.push_back(static_cast<float>(of_any) / kPerUnit);
  return levels;
}

std::string loss_table(const std::vector<LossCurve>& curves) {
  Table table({{"loss"}});
  std::vector<Cell> heading = {"after step"};
  for (const LossCurve& curve : curves) {
    for (const std::string& above : {std::string(), curve.name, std::string()}) table.column({above, Digits{4}});
    heading.insert(heading.end(), {"training", "held out", "other text"});
  }
  table.row(heading);
  const std::size_t last = curves[0].validations.size() - 1;
  const std::size_t stride = std::max<std::size_t>(1, last / kTableRows);
  for (std::size_t i = 0; i <= last; i = i < last ? std::min(i + stride, last) : last + 1) {
    const int step = curves[0].validations[i].step;
    std::vector<Cell> row = {std::to_string(step)};
    for (const LossCurve& curve : curves) {
      row.push_back(step == 0 ? Cell("") : Cell(smoothed(curve, step)));
      row.insert(row.end(), {curve.validations[i].held_out, curve.validations[i].other});
    }
    table.row(row);
  }
  return table.text();
}

std::string lead_table(const LossCurve& first, const LossCurve& second) {
  Table table({{"steps to"}});
  for (const char* above : {"", "training", "", "", "held out", ""}) table.column({above, Side::right});
  table.row({"a loss of", first.name, second.name, "lead", first.name, second.name, "lead"});
  for (const float level : loss_levels({first, second})) {
    std::vector<Cell> row = {fmt::format("{:.2f}", level)};
    for (const auto reached : {reached_in_training, reached_held_out}) {
      const std::optional<double> one = reached(first, level), other = reached(second, level);
      for (const std::string& text : {step_text(one), step_text(other), ratio_text(one, other)}) row.emplace_back(text);
    }
    table.row(row);
  }
  return table.text();
}

std::string grid_line(const Grid& grid, const std::vector<LossCurve>& curves, bool equal) {
  std::string losses;
  for (const LossCurve& curve : curves)
    losses += fmt::format("{} {:.4f}, held out {:.4f} · ", curve.name, curve.training.back(),
                          curve.validations.back().held_out);
  return left_and_right(fmt::format("{} · {}", grid.text(), losses) + (equal ? "all bits" : "other bits"),
                        equal ? "✔" : "✘");
}

}  // namespace muonwalk::sim
