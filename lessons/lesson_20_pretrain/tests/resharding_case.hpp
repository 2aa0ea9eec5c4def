#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lessons/lesson_20_pretrain/checkpoint.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk::test {

/// A small model, what steps it, and its gradients: the same whatever grid it is trained on.
struct TinyRun {
  std::uint64_t seed = 0;
  std::vector<Parameter> parameters;  ///< routed to groups
  std::function<std::unique_ptr<Optimizer>()> make;
  bool one_leaf = false;  ///< the whole gradient is on DP rank 0, so that the sum is exact for any dp; else four leaves
  bool tied = false;      ///< the first parameter lies in the first and in the last stage

  std::vector<NamedMatrix> first_weights() const;
  /// What DP rank `dp_rank` of `dp` computes in a step, whole, one per parameter.
  std::vector<Matrix> own_gradients(int step, int dp, int dp_rank) const;
  /// All weights after that many steps on one process, in order.
  std::vector<NamedMatrix> reference(int steps) const;
};

/// Any model of one to nine parameters, under any of several optimizers.
TinyRun random_run(std::uint64_t seed);

/// A grid, and the layouts of its pipeline stages.
struct Stages {
  Grid grid;
  std::vector<Layout> layouts;
  std::string text() const;
};

/// Any dp and tp from 1 to 4 and pp from 1 to 3, at most 12 ranks; stages of any lengths, each with buckets, alignments
/// and owners of its own.
Stages random_stages(const TinyRun& run, std::uint64_t seed);

/// Those of a grid, with the stages as equal as they can be and the same options for all.
Stages stages_of(const TinyRun& run, const Grid& grid, const LayoutOptions& options = {});

/// What a test may do to a rank's state, when it was saved or before it is resumed with.
using ChangeState = std::function<void(SavedState&, const Place&)>;

/// What came of training on a grid.
struct Trained {
  std::optional<Checkpoint> saved;               ///< after the last step, on rank 0
  std::vector<std::vector<NamedMatrix>> slices;  ///< of each rank, of its stage's parameters
  std::string against_plan;                      ///< where the calls that gathered it are not the planned ones
  std::vector<std::string> refused;              ///< what each rank was told when it saved; empty where it was not
};

/// Trains from `from` (null: from the beginning) up to `steps` steps in all, and gathers a checkpoint.
Trained train(const TinyRun& run, const Stages& stages, const Checkpoint* from, int steps,
              const ChangeState& saving = nullptr, const ChangeState& resuming = nullptr);

/// The first rank and parameter whose slice is not that of the whole weights; else empty.
std::string first_difference(const Stages& stages, const Trained& trained, const std::vector<NamedMatrix>& whole);

}  // namespace muonwalk::test
