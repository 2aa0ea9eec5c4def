#include "lessons/lesson_20_pretrain/loss_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

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

std::string more_text(const std::optional<double>& more) { return more ? fmt::format("{:+.0f} %", 100 * *more) : "-"; }

std::optional<double> more_steps(const std::optional<double>& first, const std::optional<double>& second) {
  return first && second && *second > 0 ? std::optional((*first - *second) / *second) : std::nullopt;
}

// Of a curve: its losses as means of kSmoothedSteps, or of as many as there are.
std::vector<float> means(const LossCurve& curve) {
  std::vector<float> all;
  for (int step = 1; step <= static_cast<int>(curve.training.size()); ++step) all.push_back(smoothed(curve, step));
  return all;
}

// Which of the rows 0 to `last` a table shows: that one, and about kTableRows others, evenly.
std::vector<std::size_t> shown_rows(std::size_t last) {
  std::vector<std::size_t> rows;
  const std::size_t stride = std::max<std::size_t>(1, last / kTableRows);
  for (std::size_t i = 0; i < last; i += stride) rows.push_back(i);
  rows.push_back(last);
  return rows;
}

// Losses in order as bars that stand side by side, from the lowest to the highest of them.
std::string loss_bars(const std::vector<float>& losses) {
  constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::size_t kWide = 60;
  if (losses.empty()) return "";
  const auto [lowest, highest] = std::minmax_element(losses.begin(), losses.end());
  const float step = std::max((*highest - *lowest) / 8, 1e-6f);
  std::string text;
  for (std::size_t i = 0; i < kWide; ++i)
    text += kBars[std::min(7, static_cast<int>((losses[losses.size() * i / kWide] - *lowest) / step))];
  return text;
}

}  // namespace

Spread spread_of(const std::vector<double>& numbers) {
  Spread spread{0, numbers.at(0), numbers.at(0)};
  for (const double number : numbers) {
    spread.mean += number / static_cast<double>(numbers.size());
    spread.smallest = std::min(spread.smallest, number);
    spread.largest = std::max(spread.largest, number);
  }
  return spread;
}

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
  for (const std::size_t i : shown_rows(curves[0].validations.size() - 1)) {
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
  for (const char* above : {"", "training", "", "", "", "held out", "", ""}) table.column({above, Side::right});
  table.row({"a loss of", first.name, second.name, "lead", "more", first.name, second.name, "lead", "more"});
  for (const float level : loss_levels({first, second})) {
    std::vector<Cell> row = {fmt::format("{:.2f}", level)};
    for (const auto reached : {reached_in_training, reached_held_out}) {
      const std::optional<double> one = reached(first, level), other = reached(second, level);
      for (const std::string& text :
           {step_text(one), step_text(other), ratio_text(one, other), more_text(more_steps(one, other))})
        row.emplace_back(text);
    }
    table.row(row);
  }
  return table.text();
}

std::vector<float> smoothed_exponentially(const std::vector<float>& losses, double alpha) {
  std::vector<float> all;
  double sum = 0, weights = 0;
  for (const float loss : losses) {
    sum = static_cast<double>(loss) + (1 - alpha) * sum;
    weights = 1 + (1 - alpha) * weights;
    all.push_back(static_cast<float>(sum / weights));
  }
  return all;
}

std::optional<double> leading_steps(const std::vector<float>& first, const std::vector<float>& second, int step) {
  const float loss = second.at(static_cast<std::size_t>(step - 1));
  const auto found = std::find_if(first.begin(), first.end(), [loss](float other) { return other < loss; });
  if (found == first.end()) return std::nullopt;
  return more_steps(static_cast<double>(found - first.begin()) + 1, static_cast<double>(step));
}

std::string leading_steps_table(const LossCurve& first, const LossCurve& second) {
  using Smooth = std::vector<float> (*)(const LossCurve&);
  const std::vector<std::pair<std::string, Smooth>> ways = {
      {"each batch", [](const LossCurve& curve) { return curve.training; }},
      {fmt::format("mean of {} steps", kSmoothedSteps), means},
      {"exponential, α = 0.2", [](const LossCurve& curve) { return smoothed_exponentially(curve.training, 0.2); }},
      {fmt::format("exponential, α = {}", kSmoothing),
       [](const LossCurve& curve) { return smoothed_exponentially(curve.training, kSmoothing); }},
      {"exponential, α = 0.005", [](const LossCurve& curve) { return smoothed_exponentially(curve.training, 0.005); }}};
  const int steps = static_cast<int>(std::min(first.training.size(), second.training.size()));
  Table table({Column("leading steps at step")});
  std::vector<int> shown;
  for (int i = 1; i <= static_cast<int>(kTableRows); ++i)
    if (const int step = steps * i / static_cast<int>(kTableRows); step > 0) shown.push_back(step);
  for (const int step : shown) table.column({std::to_string(step), Side::right});
  for (const auto& [name, smooth] : ways) {
    std::vector<Cell> row = {name};
    for (const int step : shown) {
      const std::optional<double> lead = leading_steps(smooth(first), smooth(second), step);
      row.emplace_back(lead ? more_text(lead) : "never");
    }
    table.row(row);
  }
  std::string text = table.text();
  for (const LossCurve* curve : {&first, &second})
    for (const std::size_t way : {std::size_t{1}, std::size_t{3}})
      text += fmt::format("\n{:13} {:22} {}", curve->name, ways[way].first, loss_bars(ways[way].second(*curve)));
  return text;
}

std::string seeds_table(const std::vector<std::vector<LossCurve>>& seeds) {
  Table table({Column(fmt::format("{} seeds", seeds.size()))});
  std::vector<Cell> heading = {"held-out loss after step"};
  for (const LossCurve& curve : seeds.at(0)) {
    for (const std::string& above : {std::string(), curve.name, std::string()}) table.column({above, Side::right});
    heading.insert(heading.end(), {"mean", "smallest", "largest"});
  }
  const auto add = [&](std::vector<Cell>& row, const std::vector<double>& numbers, int digits) {
    const Spread spread = spread_of(numbers);
    for (const double number : {spread.mean, spread.smallest, spread.largest})
      row.emplace_back(fmt::format("{:.{}f}", number, digits));
  };
  table.row(heading);
  for (const std::size_t i : shown_rows(seeds[0][0].validations.size() - 1)) {
    std::vector<Cell> row = {std::to_string(seeds[0][0].validations[i].step)};
    for (std::size_t way = 0; way < seeds[0].size(); ++way) {
      std::vector<double> losses;
      for (const auto& curves : seeds) losses.push_back(static_cast<double>(curves[way].validations[i].held_out));
      add(row, losses, 4);
    }
    table.row(row);
  }
  if (seeds[0].size() < 2) return table.text();
  std::vector<LossCurve> all;
  for (const auto& curves : seeds) all.insert(all.end(), curves.begin(), curves.end());
  table.row({"lead to a held-out loss of", "mean", "smallest", "largest"});
  for (const float level : loss_levels(all)) {
    std::vector<double> leads;
    for (const auto& curves : seeds) {
      const auto one = reached_held_out(curves[0], level), other = reached_held_out(curves[1], level);
      if (one && other && *other > 0) leads.push_back(*one / *other);
    }
    if (leads.size() < seeds.size()) continue;  // not all of them come there
    std::vector<Cell> row = {fmt::format("{:.2f}", level)};
    add(row, leads, 2);
    table.row(row);
  }
  return table.text();
}

std::string inside_table(const std::vector<LossCurve>& curves) {
  Table table({Column("")});
  std::vector<Cell> heading = {"after step"};
  for (const char* above : {"largest score of a key", "RMS of the last layer's output"})
    for (std::size_t i = 0; i < curves.size(); ++i) {
      table.column({i == 0 ? above : "", Digits{3}});
      heading.emplace_back(curves[i].name);
    }
  table.row(heading);
  for (const std::size_t i : shown_rows(curves.at(0).validations.size() - 1)) {
    std::vector<Cell> row = {std::to_string(curves[0].validations[i].step)};
    for (const auto member : {&Validation::largest_score, &Validation::output_rms})
      for (const LossCurve& curve : curves) row.emplace_back(curve.validations[i].*member);
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
