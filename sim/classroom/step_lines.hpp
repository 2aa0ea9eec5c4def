#pragma once

#include <string>
#include <vector>

#include "sim/ranks/reports.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::sim {

/// What the ranks said in one step, as aligned lines in rank order: said lines, shown things and, with values, these
/// too. Without values, neighbours that say the same say it once.
std::vector<std::string> step_lines(const Grid& grid, const StepReports& reports, bool values);

/// "every rank sent 48 B in 1 message and received 48 B": a line for each group of ranks that moved the same, none
/// where nothing moved.
std::vector<std::string> moved_lines(const StepReports& reports);

}  // namespace muonwalk::sim
