#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/train/pipeline/pipeline_timeline.hpp"

namespace muonwalk::sim {

/// Timelines of a pipeline, by name, below each other as an SVG picture. Each stage has a lane with a box per move, in
/// one colour for forward and another for backward, with the micro-batch's number; where the lane is empty, the stage
/// is idle. Below it, bars say how many micro-batches' activations the stage holds, on one scale in the whole picture.
/// All played timelines are on one scale of time, and all measured ones on another. Over each timeline stand its length
/// and its bubbles (bubble_text). `title` is the picture's. It carries a description for readers who can't see it, and
/// its own colours (sim/replay/palette.hpp) for light and dark. Throws std::invalid_argument where there is no
/// timeline, or one without moves.
std::string pipelines_svg(const std::string& title,
                          const std::vector<std::pair<std::string, PipelineTimeline>>& timelines);

}  // namespace muonwalk::sim
