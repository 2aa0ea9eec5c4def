#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/layout/buffer.hpp"

namespace muonwalk {

/// Layouts of the same parameters side by side, as an SVG picture: for each one its buffers in a row, a run per matrix
/// in the parameter's colour, hatched and framed where several DP ranks own a part of it; below them a band that says
/// who owns what, in the colours of the ranks; and beside them, for each DP rank, a bar for the elements that it owns
/// and one for its work, Newton–Schulz, both over an equal share of what has to be done once, with a line where both
/// would be 1. All bars of a picture are drawn to one scale. It carries a title and a description for readers who
/// can't see it, and its own colours (sim/replay/palette.hpp) for light and dark. Throws std::invalid_argument where
/// there is no layout.
std::string sharding_map_svg(const std::vector<std::pair<std::string, Layout>>& layouts);

}  // namespace muonwalk
