#pragma once

#include <string>

#include "sim/analyser/pictures/trace_picture.hpp"

namespace muonwalk::sim {

/// The parts of a page that are text and tables, as HTML: they say all that the pictures show, and need no script.
/// Where the time of each rank goes: a row a rank, one for all of them, with the figures of the bars.
std::string span_table(const TracePicture& picture);

/// The calls of each rank by collective, element type and group, with bytes and bandwidths.
std::string collectives_table(const TracePicture& picture);

/// What each lane of the timeline holds.
std::string lanes_table(const TracePicture& picture);

/// What was counted, what was left out and why, and what to mind when reading the figures.
std::string counted_list(const TracePicture& picture);

/// The sentences on why runs are not comparable; nothing without any.
std::string warnings_list(const TracePicture& picture);

/// What the colours stand for.
/// @{
std::string lane_legend(const TracePicture& picture);
std::string part_legend();
/// @}

}  // namespace muonwalk::sim
