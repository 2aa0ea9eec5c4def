#pragma once

#include <string>

#include "sim/classroom/lesson.hpp"
#include "src/train/gpt_training.hpp"

namespace muonwalk::sim {

/// Both schedules of a training's batch on a grid, as text and as a picture, played with a backward that takes as long
/// as two forwards, and messages that take no time; with their bubbles.
/// @{
std::string schedules_text(const GptTraining& training, const Grid& grid);
std::string schedules_svg(const GptTraining& training, const Grid& grid);
/// @}

/// When the moves of a lesson's steps were made, in the parent: bubbles on standard error (not with
/// --verbose 0), and all steps as the picture "schedules_measured". The lesson has to be traced (LessonInfo::traced).
void print_measured(LessonCore& lesson);

}  // namespace muonwalk::sim
