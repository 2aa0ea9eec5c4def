#pragma once

#include <string>

#include "lessons/lesson_20_pretrain/pretraining.hpp"
#include "src/train/checkpoint.hpp"

namespace muonwalk::sim {

/// Makes the folders that --save asks for, one for each way, and does nothing without it. Throws UsageError where one
/// can't be made, or no checkpoint can be written in it.
void make_checkpoint_folders(const Pretraining& run);

/// Writes a checkpoint of a way to its folder, with all that decides bits as notes (Pretraining::notes). Throws
/// RunError, one sentence, where it can't be written any more.
void write_to_folder(const Pretraining& run, const TrainingWay& way, Checkpoint checkpoint);

/// The checkpoint that `--resume path` means for the way of this word ("muon"): the file itself, or the latest one of
/// the folder, or of the way's own folder in it; empty for an empty path. With `both` ways, a file is not enough.
/// Throws UsageError, one sentence, where there is none.
std::string resumed_file(const std::string& path, const std::string& word, bool both);

}  // namespace muonwalk::sim
