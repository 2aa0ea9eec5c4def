#pragma once

#include <string>

#include "src/train/checkpoint.hpp"

namespace muonwalk::sim {

/// Makes a folder that --save asks for. Throws UsageError where it can't be made, or where no checkpoint of a run of
/// this many steps can be written in it.
void make_checkpoint_folder(const std::string& folder, int steps);

/// Writes a checkpoint to a folder. Throws RunError, one sentence, where it can't be written any more.
void write_to_folder(const std::string& folder, Checkpoint checkpoint);

/// The checkpoint that `--resume path` means for the way of this word ("muon"): the file itself, or the latest one of
/// the folder, or of the way's own folder in it; empty for an empty path. With `both` ways, a file is not enough.
/// Throws UsageError, one sentence, where there is none.
std::string resumed_file(const std::string& path, const std::string& word, bool both);

}  // namespace muonwalk::sim
