#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/io/safetensors.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/fused_matrix.hpp"
#include "src/optim/serial_muon.hpp"
#include "src/train/training.hpp"

namespace muonwalk {

/// What the reader gave on the command line.
struct TrainingFileNames {
  std::string params;                    ///< a safetensors file of weights
  std::vector<std::string> grads;        ///< one safetensors file of gradients per step
  std::string out;                       ///< The file for the new weights.
  std::vector<std::string> frozen = {};  ///< names of tensors that are not trained, or patterns ("*inv_freq")
  std::vector<std::string> split = {};   ///< "PATTERN=HOW": tensors that several matrices share, see split_rows
  std::string momentum_in = {};          ///< Where the momentum begins; empty: at zero.
  std::string momentum_out = {};         ///< The file for what it becomes; empty: none.
};

/// The pieces of a matrix with `rows` rows, by what stands behind the = of --split: "qkv:HEADS:KV_HEADS" (q, then k,
/// then v), "qkv-heads:HEADS:KV_HEADS" (each of their heads by itself), the same two with "megatron-" before them (each
/// k head follows its q heads, and its v head it), "heads:HEADS", or "gate-up". Throws UsageError, a sentence, for any
/// other word and for rows that can't be shared out like that.
std::vector<Piece> split_rows(const std::string& how, Index rows);

/// Training data from the reader's own files. Every matrix, vector and single number of type F32, BF16 or F16 is
/// trained, in float32, but for those that are frozen. Of a tensor with three dimensions, a stack of experts, each
/// matrix is a parameter by itself, "NAME[2]"; of one that is split, each piece is, "NAME[k]". They and tensors of
/// other types, or without an element, are written unchanged. The gradient in a file is that of the whole batch: leaf 0
/// holds it and the other leaves are zero, so that the sum over DP ranks is exact and the result is the same in every
/// layout. The gradients of one step are held at a time, however many files there are.
class FileTraining : public Training {
 public:
  /// Reads all files once, one after the other, so that whatever is wrong with them is found before any rank starts.
  /// TP cuts the rows of a matrix if `tp` divides them, else its columns, else nothing; vectors are not cut. Throws
  /// UsageError, one sentence that names the file, for everything read_safetensors refuses; for names or shapes that
  /// differ between the files; a tensor of one of the three types with more than three dimensions that is not frozen; a
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

  /// What the file of momentum holds, by parameter; nothing without one. In that file the tensors have the names and
  /// shapes of weights, and the means of a parameter's second moment are a vector called NAME.second_moment.
  const MuonMemory& kept() const { return kept_; }
  /// Throws UsageError, a sentence, where that file lacks the momentum of one of these parameters, or the means if
  /// they are `used`; or where it has those of another.
  void require_kept(const std::vector<std::string>& parameters, const SecondMoment& used) const;
  /// Writes such a file, in float32, either whole or not at all. Throws as write does.
  void write_kept(const MuonMemory& kept) const;

  /// The names of the tensors that are not trained, in the order of the file.
  const std::vector<std::string>& unchanged() const { return unchanged_; }

  /// Writes the file of weights anew with `weights` (in the order of parameters()) in place of the old ones, each in
  /// the type it had; either whole or not at all. Throws UsageError as write_safetensors does.
  void write(const std::vector<Matrix>& weights) const;

 private:
  // Where a parameter lies: some rows of a tensor, whose matrices lie one below the other.
  struct Place {
    std::size_t tensor;
    Piece rows;
    bool whole;  // all of it
  };
  std::vector<Matrix> read_gradients(const std::string& path) const;
  std::vector<Matrix> read_again(int step) const;
  std::vector<Place> places_of(const StoredTensor& tensor, std::size_t number) const;
  void read_kept();

  TrainingFileNames names_;
  SafetensorsFile file_;
  std::vector<Parameter> parameters_;
  std::vector<Place> places_;  // of each
  MuonMemory kept_;
  std::vector<std::string> unchanged_;
  std::vector<Matrix> weights_;
  std::vector<std::uint64_t> digests_;  // of the gradients of each step, as they were at the start
};

}  // namespace muonwalk

namespace muonwalk::sim {

/// What the reader's file of momentum holds; nothing where there is none.
MuonMemory kept_before(const Training& training);

/// Puts what a Muon has kept of the whole model where the rank at `place` keeps its part: the DP shard of its TP slice
/// of each momentum, and all means of the matrices that it orthogonalizes. What is not in `kept` stays as it is.
void put_kept(const MuonMemory& kept, const Layout& hidden, const Place& place, MuonState& state);

/// The parts that a rank keeps, one row for each matrix of which it owns an element, and one for its means.
std::vector<NamedMatrix> kept_parts(const MuonState& state, const Layout& hidden, const Place& place);

}  // namespace muonwalk::sim
