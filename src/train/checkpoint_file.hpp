#pragma once

#include <optional>
#include <string>

#include "src/train/checkpoint.hpp"

namespace muonwalk {

// A checkpoint is one safetensors file, so that weights and the optimizer's state can't be those of two steps, and
// because one file takes its place in one moment. Its tensors:
//
//     NAME                   the weights, under the parameter's own name, so that whoever reads safetensors finds them
//     optimizer.KIND.NAME    what the optimizer keeps of it: optimizer.momentum.w, optimizer.second_moments.w
//
// all of F32, whole, and in this order. Which parameter has which state is said by these names alone. Its metadata:
//
//     format                 "pt", which Hugging Face's loaders ask for: tensors lie row by row
//     muonwalk.checkpoint    the version of all this
//     muonwalk.optimizer     "Muon + ZeRO-1 AdamW"
//     muonwalk.steps         the steps taken, in decimal digits: an integer that no type of tensor can round
//     muonwalk.digest        the 64-bit XXH3 of everything else: names, types, shapes, bytes and metadata
//     note.KEY               whatever else whoever saved it wants to find again

/// The version of checkpoints that this program writes and reads.
constexpr char kCheckpointVersion[] = "1";

/// The path of a checkpoint in a folder: "FOLDER/step-000100.safetensors".
std::string checkpoint_path(const std::string& folder, int steps);

/// Writes a checkpoint, whole or not at all: beside `path`, flushed to the disk, then in its place (FileBeside). It
/// takes the checkpoint, and gives its tensors back one by one, so that they are not held twice. Throws UsageError, one
/// sentence: as write_safetensors does (no such folder, disk full), and for a parameter whose name begins with
/// "optimizer.".
void write_checkpoint(const std::string& path, Checkpoint checkpoint);

/// Reads one. Throws UsageError, one sentence that names the file: as read_safetensors does, and for a file that is
/// not a checkpoint, or one of another version, or one of which anything is not as it was written (its digest).
/// Whether it is of the right model is asked by require_model, and whether it has the right state, by state_of.
Checkpoint read_checkpoint(const std::string& path);

/// The path of the checkpoint with the most steps in a folder, or nothing where there is none. Only names are looked
/// at, so that a damaged one is refused when it is read, and not passed over for an older one without a word: other
/// files, folders, and files that a killed run left unfinished are passed over. Throws UsageError where the folder
/// can't be read.
std::optional<std::string> latest_checkpoint(const std::string& folder);

}  // namespace muonwalk
