#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "src/layout/grid.hpp"

namespace muonwalk {

/// What a reader of a figure chooses: the size of DP, or a model.
struct Choice {
  std::string name;                 ///< "dp"
  std::string words;                ///< "data-parallel ranks (dp)"
  std::vector<std::string> values;  ///< what there is to choose from
  std::string start;                ///< the one to begin with: that of the lesson's own table
};

/// A row of a figure with bars. Rows of one scale are drawn at the same length per unit.
struct BarRow {
  std::string name;   ///< "AdamW, ZeRO-1"
  std::string scale;  ///< "bytes"
};

/// What a row shows once something is chosen.
struct Bar {
  std::vector<double> parts;       ///< what the bar is put together from, in the order of the figure's series
  std::vector<std::string> cells;  ///< its numbers as the lesson's table prints them
};

/// A figure with bars for every combination of what can be chosen. A combination that a layout refuses (UsageError) has
/// the sentence that says why.
struct BarFigure {
  std::string title;                                                             ///< of the whole figure
  std::string words;                                                             ///< what one should see
  std::vector<Choice> choices;                                                   ///< dp and tp first
  std::vector<std::string> series;                                               ///< what the parts of a bar are
  std::vector<BarRow> rows;                                                      ///< from the top
  std::vector<std::string> columns;                                              ///< headings of the cells
  std::function<std::vector<Bar>(const std::vector<std::string>& chosen)> bars;  ///< a bar for each row

  bool each_by_itself = false;  ///< the longest bar of every grid has all the room; otherwise that of all grids has it

  /// For docs/figures/bars.js: "states" has an entry for each combination, the last choice running fastest.
  nlohmann::json json() const;
};

/// The grid that the first two choices ask for.
Grid chosen_grid(const std::vector<std::string>& chosen);

/// Sizes of DP or TP: 1, and then each twice the one before, up to `most`.
std::vector<std::string> doubled(int most);

/// The figures of the lessons, each computed by what computes the lesson's own tables.
/// @{
nlohmann::json singular_values_figure();
nlohmann::json full_step_figure();
nlohmann::json byte_ledger_figure();
nlohmann::json memory_figure();
nlohmann::json sharding_figure();
/// @}

}  // namespace muonwalk
