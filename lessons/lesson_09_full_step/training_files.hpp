#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/io/safetensors.hpp"
#include "src/train/training.hpp"

namespace muonwalk {

/// What the reader gave on the command line.
struct TrainingFileNames {
  std::string params;                    ///< a safetensors file of weights
  std::vector<std::string> grads;        ///< one safetensors file of gradients per step
  std::string out;                       ///< The file for the new weights.
  std::vector<std::string> frozen = {};  ///< names of tensors that are not trained, or patterns ("*inv_freq")
};

/// Training data from the reader's own files. Every matrix, vector and single number of type F32, BF16 or F16 is
/// trained, in float32, but for those that are frozen. They and tensors of other types, or without an element, are
/// written unchanged. The gradient in a file is that of the whole batch: leaf 0 holds it and the other leaves are zero,
/// so that the sum over DP ranks is exact and the result is the same in every layout. The gradients of one step are
/// held at a time, however many files there are.
class FileTraining : public Training {
 public:
  /// Reads all files once, one after the other, so that whatever is wrong with them is found before any rank starts.
  /// TP cuts the rows of a matrix if `tp` divides them, else its columns, else nothing; vectors are not cut. Throws
  /// UsageError, one sentence that names the file, for everything read_safetensors refuses; for names or shapes that
  /// differ between the files; a tensor of one of the three types with more than two dimensions that is not frozen; a
  /// gradient that is missing or holds a NaN or an infinity; a file in which nothing is trained; a frozen name that no
  /// tensor has; an output path that can't be written.
  FileTraining(const TrainingFileNames& names, int tp);

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  int steps() const override { return static_cast<int>(names_.grads.size()); }
  int leaves_per_rank(int) const override { return 1; }
  Matrix weights(int p) const override { return weights_[static_cast<std::size_t>(p)]; }
  /// Whatever the weights are. Reads the step's file, and keeps nothing of it. Throws RunError where the file is not
  /// there any more or has changed since the start.
  std::vector<Matrix> gradients(int step, int leaf, const std::vector<NamedMatrix>& held) const override;

  /// The names of the tensors that are not trained, in the order of the file.
  const std::vector<std::string>& unchanged() const { return unchanged_; }

  /// Writes the file of weights anew with `weights` (in the order of parameters()) in place of the old ones, each in
  /// the type it had; either whole or not at all. Throws UsageError as write_safetensors does.
  void write(const std::vector<Matrix>& weights) const;

 private:
  std::vector<Matrix> read_again(int step) const;

  TrainingFileNames names_;
  SafetensorsFile file_;
  std::vector<Parameter> parameters_;
  std::vector<std::string> unchanged_;
  std::vector<Matrix> weights_;
  std::vector<std::uint64_t> digests_;  // of the gradients of each step, as they were at the start
};

}  // namespace muonwalk
