#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/io/safetensors.hpp"
#include "src/layout/parameter.hpp"

namespace muonwalk {

/// A parameter in a checkpoint: its weights, and what the optimizer keeps of it, whole, in float32.
struct SavedParameter {
  std::string name;                     ///< the parameter's
  int dims = 2;                         ///< 2: a matrix; 1: a vector, in one row (Parameter::dims)
  Matrix weights;                       ///< All of the parameter, in its full shape.
  std::map<std::string, Matrix> state;  ///< What is kept of it by name ("momentum"), each of the shape of the weights.
};

/// Training between two steps, without a trace of the grid that it ran on: whole tensors, with no buffers, slices or
/// shards. So it can go on in any layout.
struct Checkpoint {
  std::string path;                        ///< the file that it was read from; empty where there is none yet
  std::string optimizer;                   ///< whose state it is, Optimizer::name
  int steps = 0;                           ///< How many steps were taken.
  std::vector<SavedParameter> parameters;  ///< All parameters, in the order of the model.
  std::map<std::string, std::string>
      notes;  ///< Notes of whoever saved it: seed, text, configuration, what a sampler needs.

  /// The parameter of that name, or null.
  const SavedParameter* find(const std::string& name) const;
};

/// Refuses a checkpoint of another model: a parameter that is missing, one too many, another shape. Throws UsageError,
/// one sentence that names the file and the parameter.
void require_model(const Checkpoint& checkpoint, const std::vector<Parameter>& model);

/// Refuses a checkpoint of another run: a note of `expected` that it does not have, or has otherwise ("seed", the
/// digest of a text, what the model is). Throws UsageError, one sentence that names the file, the note and both values.
void require_notes(const Checkpoint& checkpoint, const std::map<std::string, std::string>& expected);

/// Throws UsageError: that the checkpoint can't be used, why, and what would work.
[[noreturn]] void refuse_checkpoint(const std::string& path, const std::string& why, const std::string& remedy);

/// The key of the metadata that a digest lies under.
constexpr char kDigestKey[] = "muonwalk.digest";

/// 16 hex digits that tell the contents of a file from any others, and their order: the 64-bit XXH3 of all names,
/// types, shapes, bytes and metadata, but for the digest itself.
std::string contents_digest(const SafetensorsFile& file);

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
