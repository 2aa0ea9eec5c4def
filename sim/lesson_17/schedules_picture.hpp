#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/lesson_17/overlap_tables.hpp"

namespace muonwalk::sim {

/// Played plans, by name, below each other as an SVG picture, all on one scale of time: for each a lane for the link
/// and one for the processor, and in them a bar per bucket, in the bucket's colour. Where the processor's lane is
/// empty, the rank waits. `machine` is said in the title. It carries a title and a description for readers who can't
/// see it, and its own colours (sim/pictures/palette.hpp) for light and dark. Throws std::invalid_argument where there
/// is no plan.
std::string schedules_svg(const std::vector<std::pair<std::string, PlayedPlan>>& ways, const std::string& machine);

/// The same of the slowest rank of each way.
std::string schedules_svg(const std::vector<PlannedWay>& ways, const PlayedMachine& machine);

}  // namespace muonwalk::sim
