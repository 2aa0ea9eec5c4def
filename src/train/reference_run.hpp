#pragma once

#include <memory>
#include <vector>

#include "src/optim/optimizer.hpp"
#include "src/train/training.hpp"

namespace muonwalk {

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
