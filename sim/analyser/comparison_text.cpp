#include <fmt/format.h>

#include <cmath>

#include "sim/analyser/figure_table.hpp"
#include "sim/analyser/trace_text.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr const char* kUnknown = "–";

std::string value_text(std::optional<double> value, const std::string& unit) {
  if (!value) return kUnknown;
  if (unit == "ms") return ms_text(static_cast<std::int64_t>(std::llround(*value * 1e6)));
  if (unit == "%") return percent_text(*value / 100);
  return *value == std::floor(*value) ? number_text(static_cast<long long>(*value)) : fmt::format("{:.1f}", *value);
}

// "5 ranks of 8, 3 steps, nccl".
std::string run_text(const Summary& run) {
  return fmt::format("{} of {} ranks, {}", run.ranks.size(), run.world_size > 0 ? std::to_string(run.world_size) : "?",
                     run.together.steps > 0 ? fmt::format("{} steps", run.together.steps) : "no steps found");
}

}  // namespace

std::vector<std::string> comparison_text(const TraceComparison& comparison) {
  std::vector<std::string> lines = {"muonwalk-trace compare"};
  for (const auto& [name, run] : {std::make_pair("A", &comparison.a), std::make_pair("B", &comparison.b)})
    for (const std::string& path : run->paths)
      append(lines, aligned_lines(fmt::format("  {}  {}", name, path), run_text(*run)));
  lines.push_back("");
  std::vector<std::vector<std::string>> rows = {{"a rank's mean", "unit", "A", "B", "B / A"}};
  for (const ComparedFigure& figure : comparison.figures) {
    if (!figure.a && !figure.b) continue;
    rows.push_back({"  " + figure.name, figure.unit == "%" ? "" : figure.unit, value_text(figure.a, figure.unit),
                    value_text(figure.b, figure.unit),
                    figure.ratio() ? fmt::format("{:.3f}", *figure.ratio()) : kUnknown});
  }
  append(lines, figure_table(rows, 2));
  lines.push_back("");
  if (comparison.warnings.empty()) {
    lines.push_back("No difference was found that would keep these runs from being compared.");
    return lines;
  }
  lines.push_back("not comparable as they are");
  for (const std::string& warning : comparison.warnings) append(lines, paragraph(warning, 2, 4));
  return lines;
}

}  // namespace muonwalk::sim
