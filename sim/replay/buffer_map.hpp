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

/// The buffer as an SVG picture: buckets as rows, parameters as coloured runs with their names, DP boundaries as lines,
/// padding hatched, the slices of DP rank `marked_dp_rank` framed (−1: none). Rows are equally wide, so that a rank's
/// shards stand below each other. It carries a title and a description for readers who can't see it, and its own
/// colours (sim/replay/palette.hpp) for light and dark. Throws UsageError for a rank that is not there to be marked.
std::string buffer_map_svg(const Layout& layout, int marked_dp_rank = -1);

}  // namespace muonwalk
