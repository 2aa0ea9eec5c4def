#pragma once

#include <string>

#include "src/layout/buffer.hpp"

namespace muonwalk {

/// The virtual buffer as text: a row per bucket, a letter per parameter ('a' for the first), '·' for padding, '|' at
/// the boundaries between DP ranks, with a legend of names and ranges. At most `columns` characters wide; where a
/// bucket has more elements than that, one character stands for several and the map says for how many: the one that
/// fills most of them. All buckets are drawn to one scale; where a line has no room for all DP ranks, a row takes
/// several lines. Throws std::invalid_argument for less than 60 columns.
std::string buffer_map_text(const Layout& layout, int columns = 96);

}  // namespace muonwalk
