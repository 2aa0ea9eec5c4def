#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "src/comm/communicator.hpp"
#include "src/optim/buckets.hpp"
#include "src/optim/plan.hpp"
#include "src/optim/rms_monitor.hpp"
#include "src/optim/serial_optimizer.hpp"

namespace muonwalk {

/// Is told of each phase of a step as it begins, with the matrix that it is about; null where it is about a bucket. So
/// a caller can take the time, or show what the rank holds.
using StepObserver = std::function<void(Phase phase, const DistMeta* parameter)>;

/// What a step needs to know of the rank that takes it, besides what the rank holds.
struct StepContext {
  const Layout& layout;           ///< who owns what
  Place place;                    ///< this rank's number and coordinates in the layout's grid
  Communicator& dp;               ///< its data-parallel group
  Communicator& tp;               ///< its tensor-parallel group
  StepObserver observer = {};     ///< may be empty
  RmsMonitor* monitor = nullptr;  ///< may be null; Muon tells it of new weights and updates

  /// Tells the observer that a phase begins.
  void begin(Phase phase, const DistMeta* parameter = nullptr) const {
    if (observer) observer(phase, parameter);
  }
};

/// Something that a step is handed, for require_fitting: whole buckets, or this rank's shards of them.
struct HandedBuckets {
  const char* what;     ///< "gradients"
  BucketsView buckets;  ///< themselves
  bool whole = true;    ///< false: what this rank owns of each bucket
};

/// Refuses what a step could not make sense of, before anything is sent: groups whose size is not the grid's, a
/// place that is not the rank's in its groups, buckets of other sizes than the layout's. Throws std::invalid_argument
/// with one sentence that begins with the name of the step and says what does not fit and what would.
void require_fitting(const char* step, const StepContext& context, std::initializer_list<HandedBuckets> handed);

/// What an optimizer keeps on one rank from step to step, besides the weights.
struct Kept {
  std::string name;    ///< "momentum"
  Index elements = 0;  ///< how many, padding included
};

/// An optimizer on one rank: what it keeps, its step, and the plan of it. Muon (full_step.hpp) and AdamW
/// (adamw_step.hpp) are two; another one, or another way to share out the work of one, is a class of its own in a file
/// of its own.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// "Muon".
  virtual std::string name() const = 0;
  /// Begins on the rank at `place` with its TP slices of all weights: whole buckets, as pack_buckets makes them.
  virtual void start(const Layout& layout, const Place& place, Buckets weights) = 0;
  /// One step with this rank's own gradients: whole buckets, whose sum over DP ranks is what counts. The context is of
  /// the rank and the layout that it was started with. It does what its plan lists, call by call.
  virtual void step(const StepContext& context, const BucketsView& gradients) = 0;
  /// What the rank at `place` does in a step. Runs nothing, and does not ask whether it was started.
  virtual Plan plan(const Layout& layout, const Place& place) const = 0;
  /// This rank's TP slices of all weights: whole buckets, the same on every DP rank.
  virtual BucketsView weights() const = 0;
  /// What it keeps besides them.
  virtual std::vector<Kept> keeps() const = 0;
  /// The elements of all that.
  Index kept_elements() const;
  /// The program on one process whose bits it has to have, starting from these weights.
  virtual std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const = 0;
};

}  // namespace muonwalk
