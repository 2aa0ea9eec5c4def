#pragma once

#include <string>

#include "src/layout/grid.hpp"

namespace muonwalk {

/// The grid as text: a box per rank, one panel per pipeline stage, dp counted down and tp across, and below it the
/// groups of all three kinds with their ranks. At most `columns` characters wide: panels that do not fit stand below
/// each other, and a TP dimension too wide for a line is cut. Throws std::invalid_argument below 60.
std::string grid_map_text(const Grid& grid, int columns = 96);

}  // namespace muonwalk
