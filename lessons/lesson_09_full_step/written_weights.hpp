#pragma once

#include <string>
#include <vector>

#include "sim/classroom/lesson.hpp"
#include "src/train/training_files.hpp"

namespace muonwalk::sim {

/// Writes what the steps made of the reader's own weights, where every check has held, and says so. `held[rank]` are
/// the TP slices of the rank's pipeline stage; those of DP rank 0 are joined to whole matrices, and written in the type
/// that each had. The file is there whole or not at all, also when Ctrl-C comes meanwhile.
void write_weights(LessonCore& lesson, const FileTraining& files, const std::string& out,
                   const std::vector<std::vector<NamedMatrix>>& held);

}  // namespace muonwalk::sim
