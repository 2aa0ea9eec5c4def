#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/lesson_14/rank_memory.hpp"
#include "src/layout/buffer.hpp"

namespace muonwalk::sim {

/// One step of a rank as a picture (SVG): a row for each of `ways` ("ZeRO-1 Muon" and its memory), a bar per phase, as
/// high as the most bytes that are held in it; all rows have one scale. At the bottom of a bar lies what is kept from
/// step to step, in a colour for each kind, and on it what is held for a moment. `layout` is the one that was planned
/// for, and knows the names of the matrices.
std::string memory_picture(int rank, const std::vector<std::pair<std::string, RankMemory>>& ways, const Layout& layout);

}  // namespace muonwalk::sim
