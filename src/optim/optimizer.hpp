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
#include "src/optim/serial_muon.hpp"

namespace muonwalk {

/// Is told of each phase of a step as it begins, with the matrix that it is about; null where it is about a bucket. So
/// a caller can take the time, or show what the rank holds.
using StepObserver = std::function<void(Phase phase, const DistMeta* parameter)>;

/// What a step needs to know of the rank that takes it, besides what the rank holds.
struct StepContext {
  const Layout& layout;           ///< who owns what
  Place place;                    ///< this rank's number and coordinates in the layout's grid
  Communicator& dp;               ///< The rank's data-parallel group.
  Communicator& tp;               ///< The rank's tensor-parallel group.
  StepObserver observer = {};     ///< may be empty
  RmsMonitor* monitor = nullptr;  ///< may be null; Muon tells it of new weights and updates
  /// By the number of the parameter, for those that this rank orthogonalizes: the means of MuonSettings::second_moment.
  /// Null where no step uses it.
  std::vector<Flat>* second_moments = nullptr;

  /// Tells the observer that a phase begins.
  void begin(Phase phase, const DistMeta* parameter = nullptr) const {
    if (observer) observer(phase, parameter);
  }
};

/// Something that a step is handed, for require_fitting: whole buckets, or this rank's shards of them.
struct StepInput {
  const char* what;     ///< "gradients"
  BucketsView buckets;  ///< themselves
  bool whole = true;    ///< false: what this rank owns of each bucket
};

/// Refuses what a step could not make sense of, before anything is sent: groups whose size is not the grid's, a
/// place that is not the rank's in its groups, buckets of other sizes than the layout's. Throws std::invalid_argument
/// with one sentence that begins with the name of the step and says what does not fit and what would.
void require_fitting(const char* step, const StepContext& context, std::initializer_list<StepInput> handed);

/// Refuses settings by which a step is handed gradients that are `summed` already, for one that sums them itself.
/// Throws std::invalid_argument with one sentence that begins with the name of the step.
void require_own_gradients(const char* step, bool summed);

/// Of what is held, that it is about every buffer of the layout.
constexpr int kEveryBuffer = -1;

/// One thing that an optimizer has on a rank between two steps: the weights, or something that it keeps.
struct HeldForm {
  std::string name;           ///< "weights", "momentum"
  bool whole = false;         ///< whole buckets, the same on every DP rank; else what the rank owns of each
  int buffer = kEveryBuffer;  ///< the one buffer of the layout that it is about, where it is not about all of them

  /// Whether it has values of the parameters in a buffer of the layout.
  bool covers(int buffer_idx) const { return buffer == kEveryBuffer || buffer == buffer_idx; }
  /// Where those of a buffer are among its Buckets.
  std::size_t place_of(int buffer_idx) const {
    return buffer == kEveryBuffer ? static_cast<std::size_t>(buffer_idx) : 0;
  }
  /// All members are equal.
  friend bool operator==(const HeldForm& a, const HeldForm& b) {
    return a.name == b.name && a.whole == b.whole && a.buffer == b.buffer;
  }
};

/// The same, with its values.
struct SavedBuckets : HeldForm {
  Buckets buckets;  ///< whole buckets or shards, as the optimizer keeps them
};

/// All that an optimizer has on one rank between two steps, but its settings: what a checkpoint has to hold of it.
struct SavedState {
  std::string optimizer;           ///< whose it is, Optimizer::name
  Buckets weights;                 ///< the rank's TP slices of all weights, whole buckets
  std::vector<SavedBuckets> kept;  ///< what it keeps besides them
  int steps = 0;                   ///< How many steps were taken.
};

/// The beginning of a step's plan: what the step is handed and what the rank keeps, whole buckets first, then shards.
Plan plan_of_held(const Layout& layout, const Place& place, std::initializer_list<const char*> whole,
                  std::initializer_list<const char*> shards);

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
  /// One step with this rank's own gradients: whole buckets, whose sum over DP ranks is what counts; or, with an
  /// optimizer that takes_summed_gradients, with its DP shards of that sum. The context is of the rank and the layout
  /// that it was started with. It does what its plan lists, call by call.
  virtual void step(const StepContext& context, const BucketsView& gradients) = 0;
  /// What the rank at `place` does in the next step. For most optimizers that is what it does in every step. Runs
  /// nothing, and does not ask whether it was started.
  virtual Plan plan(const Layout& layout, const Place& place) const = 0;
  /// This rank's TP slices of all weights: whole buckets, the same on every DP rank.
  virtual BucketsView weights() const = 0;
  /// Whether its steps are handed shards of gradients that are summed over DP ranks, and reduce nothing; false: whole
  /// buckets of the rank's own.
  virtual bool takes_summed_gradients() const { return false; }
  /// From the next step on, every learning rate is the one of its settings times `factor`, rounded to float32
  /// (scaled_rate). Weight decay, which is multiplied by the learning rate, follows it. Like the settings, the factor
  /// is not saved, and neither start nor resume changes it. Throws std::invalid_argument as scaled_rate does, and
  /// std::logic_error, a sentence, where an optimizer has no learning rate to scale.
  virtual void scale_learning_rates(float factor);
  /// The elements of all that it keeps besides them, padding included.
  Index kept_elements() const;
  /// A copy of all that it has, to go on from later.
  SavedState save() const;
  /// Goes on, in place of start, on the rank at `place` with what was saved there: it steps as if it had never stopped,
  /// bit for bit. Throws std::invalid_argument, a sentence, where the state is another optimizer's or its sizes are not
  /// those that the layout says; then the optimizer has to be started or resumed again. What has the right sizes is
  /// taken: nobody can tell by looking whether a shard is another rank's.
  void resume(const Layout& layout, const Place& place, SavedState saved);
  /// The program on one process whose bits it has to have, starting from these weights, with the learning rates of the
  /// settings: where a schedule scales them, it has to be told of it, too.
  virtual std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const = 0;

 protected:
  /// Where an optimizer keeps what, besides the weights.
  struct StateTensors {
    /// Something that is kept.
    struct Item : HeldForm {
      Buckets* buckets;  ///< whose sizes do not change from step to step
    };
    std::vector<Item> items;  ///< always the same ones, in the same order
    std::vector<int*> steps;  ///< The counters of the steps that were taken: one, or one for each of its parts.
  };
  /// All that save, resume and keeps have to know.
  virtual StateTensors state_tensors() = 0;
  /// That of another one, for an optimizer that is made of several.
  static StateTensors state_tensors_of(Optimizer& part) { return part.state_tensors(); }
};

}  // namespace muonwalk
