#pragma once

#include <memory>
#include <vector>

#include "src/layout/grid.hpp"
#include "src/optim/full_step.hpp"
#include "src/optim/serial_muon.hpp"

namespace muonwalk {

/// The weights that a run starts from and the gradients that it is fed. The gradient of a step is the sum of leaves:
/// what the data-parallel ranks, or the micro-batches of one rank, each contribute. A rank asks for its own leaves and
/// for its own TP slice alone; the serial reference asks for all leaves and whole matrices.
class TrainingData {
 public:
  virtual ~TrainingData() = default;

  /// The matrices that are trained, in order.
  virtual const std::vector<Parameter>& parameters() const = 0;
  /// Optimizer steps for which there are gradients.
  virtual int steps() const = 0;
  /// How many leaves one DP rank contributes when there are `dp` of them; a power of two, so that adding them rank by
  /// rank gives the same tree as adding them all at once.
  virtual int leaves_per_rank(int dp) const = 0;
  /// Parameter p before the first step, whole.
  virtual Matrix weights(int p) const = 0;
  /// The rows and columns of leaf number `leaf`'s part of the gradient of parameter p in a step (from 0 on).
  virtual Matrix gradient(int step, int leaf, int p, Range rows, Range columns) const = 0;

  /// The gradient of parameter p that DP rank `dp_rank` of `dp` computed itself: its own leaves, added as a balanced
  /// tree.
  Matrix own_gradient(int step, int p, int dp, int dp_rank, Range rows, Range columns) const;
  /// All leaves of a step, [leaf][p], as SerialMuon::step takes them.
  std::vector<std::vector<Matrix>> all_leaves(int step, int dp) const;
};

/// Weights and gradients from Philox: the same for every layout with the same number of leaves, and a rank makes only
/// the part that it needs.
class RandomTraining : public TrainingData {
 public:
  /// `seed` decides all values.
  RandomTraining(std::vector<Parameter> parameters, int steps, std::uint64_t seed);

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  int steps() const override { return steps_; }
  /// Four leaves in all for dp 1, 2 and 4; one a rank for any other dp. Each leaf is what one
  /// micro-batch adds.
  int leaves_per_rank(int dp) const override;
  Matrix weights(int p) const override;
  Matrix gradient(int step, int leaf, int p, Range rows, Range columns) const override;

 private:
  std::vector<Parameter> parameters_;
  int steps_;
  std::uint64_t seed_;
};

/// The gradients that the rank at `place` computed itself in a step: its own leaves and its TP slices, for the
/// parameters with the numbers `mine`, in that order.
std::vector<Matrix> own_gradient_slices(const TrainingData& data, const std::vector<int>& mine, int step,
                                        const Grid& grid, const Place& place);

/// The state before the first step of a layout that was planned from the parameters with the numbers `mine`.
MuonState initial_state(const Layout& layout, const TrainingData& data, const std::vector<int>& mine, int tp_rank);

/// The whole matrices, put together from TP slices: held[rank] are the slices of the parameters of the rank's pipeline
/// stage (stage_parameters), and those of DP rank 0 are taken. In the order of `parameters`.
std::vector<Matrix> join_held_slices(const std::vector<Parameter>& parameters, const Grid& grid,
                                     const std::vector<std::vector<NamedMatrix>>& held);

/// The serial reference of a whole run: SerialMuon fed with all leaves of every step. Its results depend on the layout
/// only through the number of leaves, so one run serves every layout that has as many.
class ReferenceRun {
 public:
  /// `data` must outlive the run.
  ReferenceRun(const TrainingData& data, const MuonSettings& settings) : data_(data), settings_(settings) {}

  /// All parameters after optimizer step `step` (from 1 on) on a grid with `dp` data-parallel ranks. Computed when
  /// first asked for and kept.
  const std::vector<NamedMatrix>& after(int step, int dp);

 private:
  const TrainingData& data_;
  MuonSettings settings_;
  std::unique_ptr<SerialMuon> serial_;
  std::vector<std::vector<NamedMatrix>> results_;  // [step − 1]
  int leaves_ = 0;
};

/// The matrices of the proof of concept's own test: 100×100, 124×324, 456×124, 676×876 and 128×128, cut along rows,
/// columns, not at all, columns and rows.
std::vector<Parameter> proof_of_concept_parameters();

/// The same five at about an eighth of their size, for a quick look: 12×12, 16×40, 56×16, 84×108 and 16×16.
std::vector<Parameter> small_parameters();

/// The parameters that pipeline stage `stage` of `stages` holds: an equal run of the list, as far as it can be equal.
Range stage_parameters(int parameters, int stages, int stage);

}  // namespace muonwalk
