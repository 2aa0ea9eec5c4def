#pragma once

#include <string>
#include <vector>

#include "sim/ranks/reports.hpp"
#include "src/layout/grid.hpp"

namespace muonwalk::sim {

/// What the ranks said in one step, as aligned lines in rank order: said lines, shown things and, with values, these
/// too. Without values, ranks that say the same say it once.
std::vector<std::string> step_lines(const Grid& grid, const StepReports& reports, bool values);

/// "every rank sent 48 B in 1 message and received 48 B": a line for each set of ranks that moved the same, none where
/// nothing moved. Of more than two sets, one line from the least to the most, unless `every_set`.
std::vector<std::string> moved_lines(const StepReports& reports, bool every_set);

}  // namespace muonwalk::sim
