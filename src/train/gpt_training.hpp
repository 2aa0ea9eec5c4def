#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "src/optim/parameter_groups.hpp"
#include "src/train/clipping.hpp"
#include "src/train/pipeline/stage.hpp"

namespace muonwalk {

/// A model, and how it is trained: the same on every grid.
struct GptTraining {
  GptConfig config;            ///< the model
  MuonSettings muon;           ///< Settings for hidden matrices.
  AdamWSettings adamw;         ///< Settings for the rest; vectors get no weight decay.
  bool adamw_alone = false;    ///< hidden matrices go to AdamW, too
  bool decay_vectors = false;  ///< vectors do get weight decay
  float max_norm = 1;          ///< The largest norm of all gradients together: what is longer is clipped to it.
  int micro_batches = 8;       ///< Micro-batches in a batch, over all DP ranks.
  Index sequences = 1;         ///< Sequences in a micro-batch.
  PipelineSchedule schedule = PipelineSchedule::gpipe;  ///< The order in which stages work through them.
  Index bucket_capacity = 0;                            ///< See LayoutOptions.
  int ep = 1;              ///< Over how many DP ranks, consecutive ones, the experts of a layer are dealt out.
  std::uint64_t seed = 1;  ///< The seed of the weights before the first step.

  /// Tokens in a micro-batch.
  Index rows() const { return sequences * config.tokens; }
  /// What a row's loss counts in the gradients: 1 / the tokens of a batch, so that they are those of the mean.
  float scale() const { return 1.0f / (static_cast<float>(rows()) * static_cast<float>(micro_batches)); }
};

/// Refuses what can't be trained on a grid. Throws UsageError, one sentence: as require_sensible, split_layers and
/// own_micro_batches do, and for an EP that is not a power of two or does not divide the DP ranks and the experts.
void require_trainable(const GptTraining& training, const Grid& grid);

/// The groups of a training's parameters, whose optimizers take gradients that are summed over DP ranks, because they
/// are clipped before.
std::vector<ParameterGroup> training_groups(const GptTraining& training);

/// All parameters of a training, routed; the number of a parameter is its place in this list.
std::vector<Parameter> training_parameters(const GptTraining& training, int tp = 1);

/// The part of a model that the rank at `place` holds: its stage, with its experts.
ModelPart part_at(const GptTraining& training, const Grid& grid, const Place& place);

/// Some of the parameters of a rank, and how they are dealt out over ranks.
struct Share {
  Layout layout;   ///< Where they lie, numbered as in part_parameters, on the ranks as this share sees them.
  Place place;     ///< The rank's own place among these.
  std::string dp;  ///< The group that is the layout's dp.
};

/// All parameters of the rank at `place`: first what all DP ranks hold, over dp; then, if there are any, its experts,
/// over the dp / ep ranks that hold the same ones. In their layout, each EP rank is what a pipeline stage is in others:
/// a place with parameters of its own.
std::vector<Share> shares_at(const GptTraining& training, const Grid& grid, const Place& place);

/// The layout of a pipeline stage's parameters on a grid, but for the experts.
Layout stage_layout(const GptTraining& training, const Grid& grid, int stage);

/// What a rank holds of some whole tensors: its TP slices of the parameters of its stage, in their order, by name. A
/// parameter that both ends of a pipeline have is there once for each.
std::vector<NamedMatrix> stage_slices(const GptTraining& training, const Grid& grid, const Place& place,
                                      const std::vector<NamedMatrix>& whole);

/// An optimizer of the training's groups that has begun on the rank at `place`, with its TP slices of the first weights
/// of these parameters, which are those of the layout.
std::unique_ptr<GroupedOptimizer> started_optimizer(const GptTraining& training,
                                                    const std::vector<Parameter>& parameters, const Layout& layout,
                                                    const Place& place);

/// The tensors of the stage of the rank at `place`, for forward and backward, from the weights that its optimizer has.
PartTensors stage_tensors(const GptTraining& training, const Layout& layout, const Place& place,
                          const Optimizer& optimizer);

/// The groups of a rank that a step of training speaks in.
struct TrainingGroups {
  Communicator& dp;              ///< which have the same layers, and other data
  Communicator& tp;              ///< which share every layer
  Communicator& pp;              ///< The rank's pipeline.
  Communicator& world;           ///< all ranks: for the norm of all gradients
  Communicator* ends = nullptr;  ///< first and last stage, where the rank is in one of them and the embedding is tied
  /// With training.ep above 1, the rank's groups "ep N", and "dp / ep N" (Grid::group).
  /// @{
  Communicator* ep = nullptr;
  Communicator* dp_over_ep = nullptr;
  /// @}
};

/// What a step tells.
struct StepReport {
  float loss = 0;   ///< the mean of the batch, before the step; on ranks of the last stage
  double norm = 0;  ///< The norm of all gradients, before they were clipped.
};

/// The calls and the work of a step of training on the rank at `place`, in order.
Plan training_plan(const GptTraining& training, const Grid& grid, const Place& place);

/// The parameters of a stage whose gradients another stage counts in the norm of all: a tied embedding's second copy.
std::set<std::string> counted_elsewhere(const GptTraining& training, const Grid& grid, int stage);

/// A rank that trains its part of a model.
class GptTrainer {
 public:
  /// With the weights from before the first step. `training` must outlive it.
  GptTrainer(const GptTraining& training, const Grid& grid, const Place& place);

  /// One step: forward and backward for this rank's own micro-batches (own_micro_batches), the sum of gradients over DP
  /// ranks, clipping, and the step of the optimizer with its learning rates times `rate`. `observe` is told of the
  /// moves of the pipeline as they begin and end; it may be empty.
  StepReport step(const TrainingGroups& groups, const std::vector<MicroBatch>& own, float rate, int threads = 1,
                  const std::function<void(PipelineMove move, bool ends)>& observe = nullptr);

  /// Layout and optimizer of all but its experts, and all its weights as matrices, in the order of part_parameters.
  /// @{
  const Layout& layout() const { return shares_[0].layout; }
  Optimizer& optimizer() { return *optimizers_[0]; }
  std::vector<NamedMatrix> weights() const;
  /// @}

 private:
  const GptTraining& training_;
  Grid grid_;
  Place place_;
  std::vector<Share> shares_;
  std::vector<std::unique_ptr<GroupedOptimizer>> optimizers_;  // [share]
};

/// The reference: the same training on one process, which knows nothing of grids.
class SerialGptTrainer {
 public:
  /// With the weights from before the first step. `training` must outlive it.
  explicit SerialGptTrainer(const GptTraining& training);

  /// One step with all micro-batches of a batch.
  StepReport step(const std::vector<MicroBatch>& batch, float rate);
  /// As SerialOptimizer::skip_steps.
  void skip_steps(int steps) { serial_->skip_steps(steps); }
  /// All weights, in the order of gpt_parameters.
  const std::vector<NamedMatrix>& weights() const { return serial_->parameters(); }
  /// The same as a model.
  PartTensors tensors() const;

 private:
  const GptTraining& training_;
  std::unique_ptr<SerialOptimizer> serial_;
};

}  // namespace muonwalk
