#include "src/train/gpt_training.hpp"

#include <algorithm>
#include <utility>

#include "src/numerics/running_tree_sum.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/named_slice.hpp"

namespace muonwalk {
namespace {

constexpr char kEmbedding[] = "model.embed_tokens.weight";

std::vector<Matrix> matrices_of(std::vector<NamedMatrix> named) {
  std::vector<Matrix> all;
  for (NamedMatrix& each : named) all.push_back(std::move(each.matrix));
  return all;
}

std::vector<Parameter> routed_part(const GptTraining& training, const ModelPart& part, int tp) {
  return route(part_parameters(training.config, part, tp), training_groups(training));
}

// The sum of the losses of a batch as its mean.
float mean_loss(const GptTraining& training, float sum) {
  return sum / (static_cast<float>(training.rows()) * static_cast<float>(training.micro_batches));
}

}  // namespace

void require_trainable(const GptTraining& training, const Grid& grid) {
  require_sensible(training.config, grid.tp());
  for (int stage = 0; stage < grid.pp(); ++stage) stage_part(training.config, grid.pp(), stage);
  own_micro_batches(training.micro_batches, grid.dp(), 0);
}

std::vector<ParameterGroup> training_groups(const GptTraining& training) {
  MuonSettings muon = training.muon;
  AdamWSettings adamw = training.adamw;
  muon.summed_gradients = adamw.summed_gradients = true;
  std::vector<ParameterGroup> groups = usual_groups(muon, adamw);
  const auto with_decay = [adamw] { return std::make_unique<Zero1AdamW>(adamw); };
  if (training.adamw_alone) groups[kHiddenMatrices].make = with_decay;
  if (training.decay_vectors) groups.back().make = with_decay;
  return groups;
}

std::vector<Parameter> training_parameters(const GptTraining& training, int tp) {
  return routed_part(training, whole_model(training.config), tp);
}

Layout stage_layout(const GptTraining& training, const Grid& grid, int stage) {
  LayoutOptions options;
  options.bucket_capacity = training.bucket_capacity;
  return plan_layout(routed_part(training, stage_part(training.config, grid.pp(), stage), grid.tp()), grid, options);
}

std::vector<NamedMatrix> stage_slices(const GptTraining& training, const Grid& grid, const Place& place,
                                      const std::vector<NamedMatrix>& whole) {
  std::vector<NamedMatrix> slices;
  const ModelPart part = stage_part(training.config, grid.pp(), place.pp);
  for (const Parameter& parameter : part_parameters(training.config, part, grid.tp())) {
    const auto found =
        std::find_if(whole.begin(), whole.end(), [&](const NamedMatrix& each) { return each.name == parameter.name; });
    slices.push_back(named_slice(parameter, found->matrix, grid.tp(), place.tp));
  }
  return slices;
}

std::unique_ptr<GroupedOptimizer> started_optimizer(const GptTraining& training,
                                                    const std::vector<Parameter>& parameters, const Layout& layout,
                                                    const Place& place) {
  std::vector<Matrix> slices;
  for (const Parameter& parameter : parameters)
    slices.push_back(first_weights(training.config, parameter, training.seed, layout.grid.tp(), place.tp));
  auto optimizer = std::make_unique<GroupedOptimizer>(training_groups(training), parameters);
  optimizer->start(layout, place, pack_slices(layout, slices));
  return optimizer;
}

PartTensors stage_tensors(const GptTraining& training, const Layout& layout, const Place& place,
                          const Optimizer& optimizer) {
  const ModelPart part = stage_part(training.config, layout.grid.pp(), place.pp);
  return part_tensors(training.config, part, layout.grid.tp(),
                      matrices_of(unpack_buckets(layout, optimizer.weights(), place.tp)));
}

GptTrainer::GptTrainer(const GptTraining& training, const Grid& grid, const Place& place)
    : training_(training), grid_(grid), place_(place), layout_(stage_layout(training, grid, place.pp)) {
  const ModelPart part = stage_part(training.config, grid.pp(), place.pp);
  optimizer_ = started_optimizer(training, routed_part(training, part, grid.tp()), layout_, place);
}

std::vector<NamedMatrix> GptTrainer::weights() const {
  return unpack_buckets(layout_, optimizer_->weights(), place_.tp);
}

StepReport GptTrainer::step(const TrainingGroups& groups, const std::vector<MicroBatch>& own, float rate, int threads,
                            const std::function<void(PipelineMove move, bool ends)>& observe) {
  StageContext stage{training_.config, grid_, place_, groups.tp, groups.pp, groups.ends, threads};
  if (observe) {
    stage.begins = [&](PipelineMove move) { observe(move, false); };
    stage.ended = [&](PipelineMove move) { observe(move, true); };
  }
  const PartTensors tensors = stage_tensors(training_, layout_, place_, *optimizer_);
  StageGradients found = run_stage(stage, tensors, training_.schedule, own, training_.scale());

  StepReport report;
  if (place_.pp == grid_.pp() - 1) {  // the last stage
    groups.dp.all_reduce(&found.loss, 1);
    report.loss = mean_loss(training_, found.loss);
  }
  const StepContext context{layout_, place_, groups.dp, groups.tp};
  Buckets shards = reduced_shards(context, pack_slices(layout_, found.gradients));
  found.gradients.clear();
  report.norm =
      clip_shards(context, groups.world, training_.max_norm, counted_elsewhere(training_, grid_, place_.pp), shards);
  optimizer_->scale_learning_rates(rate);
  optimizer_->step(context, shards);
  return report;
}

Plan training_plan(const GptTraining& training, const Grid& grid, const Place& place) {
  const Range own = own_micro_batches(training.micro_batches, grid.dp(), place.dp);
  Plan plan =
      stage_plan(training.config, grid, place, training.schedule, static_cast<int>(own.size()), training.rows());
  if (place.pp == grid.pp() - 1) plan.call("dp", CollectiveKind::all_reduce, ElementType::float32, 1, 1);
  const Layout layout = stage_layout(training, grid, place.pp);
  plan_reduced_shards(plan, layout);
  plan_clip_shards(plan, layout, counted_elsewhere(training, grid, place.pp));
  const ModelPart part = stage_part(training.config, grid.pp(), place.pp);
  const GroupedOptimizer optimizer(training_groups(training), routed_part(training, part, grid.tp()));
  const Plan step = optimizer.plan(layout, place);
  plan.operations.insert(plan.operations.end(), step.operations.begin(), step.operations.end());
  return plan;
}

std::set<std::string> counted_elsewhere(const GptTraining& training, const Grid& grid, int stage) {
  const ModelPart part = stage_part(training.config, grid.pp(), stage);
  if (training.config.tied && part.last && !part.first) return {kEmbedding};
  return {};
}

SerialGptTrainer::SerialGptTrainer(const GptTraining& training) : training_(training) {
  const std::vector<Parameter> parameters = training_parameters(training);
  std::vector<NamedMatrix> weights;
  for (const Parameter& parameter : parameters)
    weights.push_back({parameter.name, first_weights(training.config, parameter, training.seed)});
  serial_ = GroupedOptimizer(training_groups(training), parameters).reference(std::move(weights));
}

PartTensors SerialGptTrainer::tensors() const {
  return part_tensors(training_.config, whole_model(training_.config), 1, matrices_of(serial_->parameters()));
}

StepReport SerialGptTrainer::step(const std::vector<MicroBatch>& batch, float rate) {
  const PartTensors model = tensors();
  RunningTreeSum sum;
  Flat losses;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    LeafOfStep leaf = serial_leaf(training_.config, model, batch[i], training_.scale());
    losses.push_back(leaf.loss);
    sum.add(static_cast<Index>(i), std::move(leaf.gradients));
  }
  StepReport report;
  report.loss = mean_loss(training_, tree_sum(losses.data(), static_cast<Index>(losses.size())));
  std::vector<Matrix> gradients = sum.take();
  report.norm = clip_gradients(gradients, training_.max_norm);
  serial_->scale_learning_rates(rate);
  serial_->step({std::move(gradients)});
  return report;
}

}  // namespace muonwalk
