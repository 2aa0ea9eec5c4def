#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/train/pipeline/pipeline_timeline.hpp"

namespace muonwalk::sim {

/// A timeline as text, a line per stage, on one scale: "stage 0  0 1 2 · · ←0─ ←1─ ←2─". A number is the forward of
/// this micro-batch, one behind an arrow its backward, and a dot a unit of time in which the stage is idle. A move that
/// has more columns than its number needs has a line behind it. Where kColumns are too few, units in the middle are
/// left out, with "…" in their place. The lines have a line end between them, and none at the end. Throws
/// std::invalid_argument for a timeline without moves, and for a move that takes no time.
std::string timeline_text(const PipelineTimeline& timeline);

/// "bubble 25.0 % on every stage, 25.0 % by the formula": PipelineTimeline::bubble, and bubble_formula.
std::string bubble_text(const PipelineTimeline& timeline);

/// Timelines with their names.
using NamedTimelines = std::vector<std::pair<std::string, PipelineTimeline>>;

}  // namespace muonwalk::sim
