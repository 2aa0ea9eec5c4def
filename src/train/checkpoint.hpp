#pragma once

#include <map>
#include <string>
#include <vector>

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

}  // namespace muonwalk
