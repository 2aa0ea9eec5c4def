#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/layout/grid.hpp"
#include "src/optim/buckets.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk {

/// What a run trains: the weights that it starts from and the gradients that it is fed. The gradient of a step is the
/// sum of leaves: what the data-parallel ranks, or the micro-batches of one rank, each contribute. Where it comes from
/// may depend on the weights, as a model's backward pass does: everybody asks with the weights that they hold.
class Training {
 public:
  virtual ~Training() = default;

  /// The matrices that are trained, in order.
  virtual const std::vector<Parameter>& parameters() const = 0;
  /// Optimizer steps for which there are gradients.
  virtual int steps() const = 0;
  /// How many leaves one DP rank contributes when there are `dp` of them; a power of two, so that adding them rank by
  /// rank gives the same tree as adding them all at once.
  virtual int leaves_per_rank(int dp) const = 0;
  /// Parameter p before the first step, whole.
  virtual Matrix weights(int p) const = 0;
  /// Leaf number `leaf`'s part of the gradients in a step (counted from 0), one for each of `held`, of its shape.
  /// `held` are the weights that the asker has: whole matrices in the reference, TP slices of its stage's parameters on
  /// a rank; each says of which parameter it is, and where in the whole it lies.
  virtual std::vector<Matrix> gradients(int step, int leaf, const std::vector<NamedMatrix>& held) const = 0;

  /// The gradients that DP rank `dp_rank` of `dp` computes itself from the weights that it holds: its own leaves, added
  /// as a balanced tree.
  std::vector<Matrix> own_gradients(int step, int dp, int dp_rank, const std::vector<NamedMatrix>& held) const;
  /// All leaves of a step, [leaf][p], as SerialOptimizer::step takes them, from the whole weights.
  std::vector<std::vector<Matrix>> all_leaves(int step, int dp, const std::vector<NamedMatrix>& weights) const;
  /// All parameters before the first step, whole.
  std::vector<NamedMatrix> first_weights() const;
  /// The number of the parameter of this name. Throws std::invalid_argument where there is none.
  int parameter_number(const std::string& name) const;
};

/// Weights and gradients from Philox: the same for every layout with the same number of leaves, and a rank makes only
/// the part that it needs.
class RandomTraining : public Training {
 public:
  /// `seed` decides all values.
  RandomTraining(std::vector<Parameter> parameters, int steps, std::uint64_t seed);

  const std::vector<Parameter>& parameters() const override { return parameters_; }
  int steps() const override { return steps_; }
  /// Four leaves in all for dp 1, 2 and 4; one per rank for any other dp. Each leaf is what one micro-batch adds.
  int leaves_per_rank(int dp) const override;
  Matrix weights(int p) const override;
  /// Whatever the weights are.
  std::vector<Matrix> gradients(int step, int leaf, const std::vector<NamedMatrix>& held) const override;

 private:
  std::vector<Parameter> parameters_;
  int steps_;
  std::uint64_t seed_;
};

/// What a rank holds before the first step of a layout that was planned from parameters of `training`, by name: its TP
/// slices, in whole buckets.
Buckets first_buckets(const Layout& layout, const Training& training, int tp_rank);

/// The whole matrices, put together from TP slices: held[rank] are the slices of the parameters of the rank's pipeline
/// stage (stage_parameters), and those of DP rank 0 are taken. In the order of `parameters`.
std::vector<Matrix> join_held_slices(const std::vector<Parameter>& parameters, const Grid& grid,
                                     const std::vector<std::vector<NamedMatrix>>& held);

/// The elements of weights that a ReferenceRun keeps unless it is told otherwise: 64 MiB of them.
constexpr Index kKeptReferenceElements = Index{16} << 20;

/// The serial reference of a whole run: an optimizer on one process, fed with all leaves of every step. Its results
/// depend on the layout only through the number of leaves, so one run serves every layout that has as many. It holds as
/// much after a thousand steps as after a few: the results of the first steps, as far as they fit into a bound, and the
/// optimizer itself.
class ReferenceRun {
 public:
  /// With the reference of `optimizer`, which goes on from `kept`. `training` must outlive the run, which keeps weights
  /// of at most `most_elements`.
  ReferenceRun(const Training& training, std::unique_ptr<Optimizer> optimizer,
               Index most_elements = kKeptReferenceElements, MuonMemory kept = {});

  /// All parameters after optimizer step `step` (counted from 1) on a grid with `dp` data-parallel ranks; valid until
  /// the next call. Asked for step by step, each is computed once. What is no longer kept is computed again from the
  /// first step on.
  const std::vector<NamedMatrix>& after(int step, int dp);

  /// What Muon keeps after the last step that was computed: that of the highest number, if they are asked for in order.
  MuonMemory kept() const;

  /// What the rank at `place` should hold then: its TP slices of the parameters of its pipeline stage
  /// (stage_parameters).
  std::vector<NamedMatrix> slices_after(int step, const Grid& grid, const Place& place);

 private:
  const Training& training_;
  std::unique_ptr<Optimizer> optimizer_;
  std::size_t most_results_;
  MuonMemory first_;
  std::unique_ptr<SerialOptimizer> serial_;
  int done_ = 0;                                   // steps that serial_ has taken
  std::vector<std::vector<NamedMatrix>> results_;  // [step − 1], of the first steps
  int leaves_ = 0;
};

}  // namespace muonwalk
