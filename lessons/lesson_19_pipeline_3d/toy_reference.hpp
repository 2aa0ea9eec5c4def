#pragma once

#include <vector>

#include "lessons/lesson_19_pipeline_3d/toy_model.hpp"

namespace muonwalk::sim {

/// The gradients of the micro-batches of a rank's DP rank before the first step, added as a tree by one process that
/// has the whole model: what the rank holds of them (stage_slices), once as of "gpipe" and once as of "1f1b", which
/// they are the same for.
std::vector<NamedMatrix> serial_gradients(const GptTraining& training, const RankInfo& rank);

/// The most elements of activations that a place holds at a time, in GPipe and in 1F1B: micro-batches in flight times
/// the elements of each.
Flat most_activations(const GptTraining& training, const Grid& grid, const Place& place);

}  // namespace muonwalk::sim
