#pragma once

#include <string>
#include <vector>

#include "sim/lesson_19/measured_timelines.hpp"
#include "src/train/gpt_training.hpp"

namespace muonwalk::sim {

/// Both schedules of a training's batch on a grid, as text and as a picture, played with a backward that takes as long
/// as two forwards, and messages that take no time; with their bubbles.
/// @{
std::string schedules_text(const GptTraining& training, const Grid& grid);
std::string schedules_svg(const GptTraining& training, const Grid& grid);
/// @}

/// What was measured, as a picture; empty where there is nothing to draw.
std::string measured_svg(const std::vector<MeasuredPipeline>& measured);

}  // namespace muonwalk::sim
