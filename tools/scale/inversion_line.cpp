#include <algorithm>
#include <cmath>

#include "tools/scale/payoff_map.hpp"

namespace muonwalk::sim {
namespace {

using Ratios = std::vector<std::vector<std::optional<double>>>;

// The middle of a cell, or its copy on the edge of the map.
struct Corner {
  MapPoint at;
  double log_ratio = 0;

  bool above() const { return log_ratio >= 0; }
};

struct Crossing {
  MapPoint at;
  bool into_above = false;  // of whoever goes on to the next corner
};

// Between two corners, where the logarithm of the ratio is 0.
MapPoint crossing(const Corner& a, const Corner& b) {
  const double share = a.log_ratio / (a.log_ratio - b.log_ratio);
  return {a.at.column + share * (b.at.column - a.at.column), a.at.row + share * (b.at.row - a.at.row)};
}

bool same_place(const MapPoint& a, const MapPoint& b) {
  return std::abs(a.column - b.column) + std::abs(a.row - b.row) < 1e-12;
}

// The line through a square or triangle of corners that lie clockwise. Whoever leaves what is above 1 and comes back
// into it has what lies between on the left. Where two opposite corners are above and the others are not, the mean
// says which of them belong together.
void add_segments(const std::vector<Corner>& corners, std::vector<InversionSegment>& line) {
  std::vector<Crossing> crossings;
  double sum = 0;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const Corner &here = corners[i], &next = corners[(i + 1) % corners.size()];
    sum += here.log_ratio;
    if (here.above() != next.above()) crossings.push_back({crossing(here, next), next.above()});
  }
  const std::size_t step = sum >= 0 ? 1 : crossings.size() - 1;
  for (std::size_t i = 0; i < crossings.size(); ++i) {
    if (crossings[i].into_above) continue;
    const MapPoint& to = crossings[(i + step) % crossings.size()].at;
    if (!same_place(crossings[i].at, to)) line.push_back({crossings[i].at, to});
  }
}

// Cells 0 to `count` − 1, with a copy of the first before them and one of the last behind them.
std::size_t cell_at(std::size_t node, std::size_t count) { return std::clamp<std::size_t>(node, 1, count) - 1; }
double place_of(std::size_t node, std::size_t count) {
  return std::clamp(static_cast<double>(node) - 0.5, 0.0, static_cast<double>(count));
}

}  // namespace

std::vector<InversionSegment> inversion_line(const Ratios& ratios) {
  std::vector<InversionSegment> line;
  const std::size_t rows = ratios.size(), columns = rows == 0 ? 0 : ratios[0].size();
  if (columns == 0) return line;
  for (std::size_t r = 0; r <= rows; ++r)
    for (std::size_t c = 0; c <= columns; ++c) {
      std::vector<Corner> corners;
      for (const auto& [row, column] : {std::pair{r, c}, {r, c + 1}, {r + 1, c + 1}, {r + 1, c}}) {
        const std::optional<double>& ratio = ratios[cell_at(row, rows)][cell_at(column, columns)];
        if (ratio) corners.push_back({{place_of(column, columns), place_of(row, rows)}, std::log(*ratio)});
      }
      if (corners.size() >= 3) add_segments(corners, line);
    }
  return line;
}

std::vector<InversionSegment> inversion_line(const PayoffMap& map) {
  Ratios ratios;
  for (const auto& row : map.cells) {
    ratios.emplace_back();
    for (const PayoffCell& cell : row)
      ratios.back().push_back(cell.communication ? std::optional<double>(cell.communication->ratio()) : std::nullopt);
  }
  return inversion_line(ratios);
}

}  // namespace muonwalk::sim
