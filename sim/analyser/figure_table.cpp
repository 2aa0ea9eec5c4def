#include "sim/analyser/figure_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "src/text/text.hpp"

namespace muonwalk::sim {

std::vector<std::string> figure_table(const std::vector<std::vector<std::string>>& rows, std::size_t left) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_width(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(static_cast<std::size_t>(widths[i] - text_width(row[i])), ' ');
      line += (i == 0 ? "" : "  ") + (i < left ? row[i] + space : space + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> paragraph(const std::string& text, int indent, int hanging) {
  std::vector<std::string> lines = wrap_text(text, hanging - indent, kColumns - indent);
  for (std::string& line : lines) line.insert(0, static_cast<std::size_t>(indent), ' ');
  return lines;
}

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

std::string ms_text(std::int64_t ns) {
  const double ms = static_cast<double>(ns) / 1e6;
  return ns != 0 && std::abs(ns) < 100'000 ? fmt::format("{:.4f}", ms) : fmt::format("{:.2f}", ms);
}

std::string percent_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace muonwalk::sim
