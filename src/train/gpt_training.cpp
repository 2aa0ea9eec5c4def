#include "src/train/gpt_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "src/errors.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/steps.hpp"
#include "src/optim/strategies/strategy.hpp"

namespace muonwalk {
namespace {

constexpr char kEmbedding[] = "model.embed_tokens.weight";
constexpr int kExperts = 3;  // the last parameter group

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
  const int ep = training.ep;
  const bool whole_subtrees = ep > 0 && (ep & (ep - 1)) == 0;
  if (ep != 1 &&
      (!whole_subtrees || grid.dp() % ep != 0 || training.config.experts == 0 || training.config.experts % ep != 0))
    throw UsageError(
        fmt::format("--ep {} can't deal out {} experts to some of {} data-parallel ranks; it takes a power of two that "
                    "divides both numbers, for example --experts 4 --dp 4 --ep 2",
                    ep, training.config.experts, grid.dp()));
}

ModelPart part_at(const GptTraining& training, const Grid& grid, const Place& place) {
  ModelPart part = stage_part(training.config, grid.pp(), place.pp);
  part.ep = training.ep;
  part.ep_rank = place.dp % training.ep;
  return part;
}

std::vector<Share> shares_at(const GptTraining& training, const Grid& grid, const Place& place) {
  const std::vector<Parameter> all = routed_part(training, part_at(training, grid, place), grid.tp());
  LayoutOptions options;
  options.bucket_capacity = training.bucket_capacity;
  std::vector<Share> shares = {{plan_layout(all, grid, options), place, "dp"}};
  if (training.config.experts == 0) return shares;
  const int ep = training.ep;
  const Grid dealt = Grid().dp(grid.dp() / ep).tp(grid.tp()).pp(grid.pp() * ep);
  const int rank = dealt.rank(place.dp / ep, place.tp, place.pp * ep + place.dp % ep);
  shares[0].layout.buffers.pop_back();  // the group of the experts is the last
  shares.push_back({plan_layout(all, dealt, options).of_group(kExperts), dealt.place(rank),
                    ep == 1 ? "dp" : fmt::format("dp / ep {}", ep)});
  return shares;
}

std::vector<ParameterGroup> training_groups(const GptTraining& training) {
  MuonSettings muon = training.muon;
  AdamWSettings adamw = training.adamw;
  muon.summed_gradients = adamw.summed_gradients = true;
  std::vector<ParameterGroup> groups = usual_groups(muon, adamw);
  groups[kHiddenMatrices].make = [muon] { return muon_owned_over_tp(muon); };
  const auto with_decay = [adamw] { return std::make_unique<Zero1AdamW>(adamw); };
  if (training.adamw_alone) groups[kHiddenMatrices].make = with_decay;
  if (training.decay_vectors) groups.back().make = with_decay;
  if (training.config.experts > 0) {
    groups[kHiddenMatrices].claim.except.push_back("*.experts.*");
    groups.push_back({"experts", {2, {"*.experts.*"}, {}}, groups[kHiddenMatrices].make});
  }
  return groups;
}

std::vector<Parameter> training_parameters(const GptTraining& training, int tp) {
  return routed_part(training, whole_model(training.config), tp);
}

Layout stage_layout(const GptTraining& training, const Grid& grid, int stage) {
  return shares_at(training, grid, grid.place(grid.rank(0, 0, stage)))[0].layout;
}

std::vector<NamedMatrix> stage_slices(const GptTraining& training, const Grid& grid, const Place& place,
                                      const std::vector<NamedMatrix>& whole) {
  std::vector<NamedMatrix> slices;
  for (const Parameter& parameter : part_parameters(training.config, part_at(training, grid, place), grid.tp())) {
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
    : training_(training), grid_(grid), place_(place), shares_(shares_at(training, grid, place)) {
  const std::vector<Parameter> parameters = routed_part(training, part_at(training, grid, place), grid.tp());
  for (const Share& share : shares_)
    optimizers_.push_back(started_optimizer(training, parameters, share.layout, share.place));
}

std::vector<NamedMatrix> GptTrainer::weights() const {
  std::vector<NamedMatrix> all;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    std::vector<NamedMatrix> some = unpack_buckets(shares_[i].layout, optimizers_[i]->weights(), place_.tp);
    all.resize(std::max(all.size(), some.size()));
    for (std::size_t p = 0; p < some.size(); ++p)
      if (!some[p].name.empty()) all[p] = std::move(some[p]);
  }
  return all;
}

StepReport GptTrainer::step(const TrainingGroups& groups, const std::vector<MicroBatch>& own, float rate, int threads,
                            const std::function<void(PipelineMove move, bool ends)>& observe) {
  const StageContext stage{training_.config, grid_,   place_,  groups.tp, groups.pp,
                           groups.ends,      threads, observe, groups.ep};
  const PartTensors tensors =
      part_tensors(training_.config, part_at(training_, grid_, place_), grid_.tp(), matrices_of(weights()));
  PartGradients found = run_stage(stage, tensors, training_.schedule, own, training_.scale());

  StepReport report;
  if (place_.pp == grid_.pp() - 1) {  // the last stage
    groups.dp.all_reduce(&found.loss, 1);
    report.loss = mean_loss(training_, found.loss);
  }
  std::vector<StepContext> contexts;  // [share]
  std::vector<Buckets> shards;
  for (const Share& share : shares_) {
    contexts.push_back({share.layout, share.place, share.dp == "dp" ? groups.dp : *groups.dp_over_ep, groups.tp});
    shards.push_back(reduced_shards(contexts.back(), pack_slices(share.layout, found.gradients)));
  }
  found.gradients.clear();
  ExactSum experts;
  for (std::size_t i = 1; i < shares_.size(); ++i)
    experts.add(squares_of_shards(shares_[i].layout, shares_[i].place, shards[i]));
  report.norm = clip_shards(contexts[0], groups.world, training_.max_norm,
                            counted_elsewhere(training_, grid_, place_.pp), shards[0], experts);
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    if (i > 0) scale_shards(shards[i], clip_factor(report.norm, training_.max_norm));
    optimizers_[i]->scale_learning_rates(rate);
    optimizers_[i]->step(contexts[i], shards[i]);
  }
  return report;
}

Plan training_plan(const GptTraining& training, const Grid& grid, const Place& place) {
  const Range own = own_micro_batches(training.micro_batches, grid.dp(), place.dp);
  Plan plan = stage_plan(training.config, grid, place, training.schedule, static_cast<int>(own.size()), training.rows(),
                         training.ep);
  if (place.pp == grid.pp() - 1) plan.call("dp", CollectiveKind::all_reduce, ElementType::float32, 1, 1);
  // What is planned over a share's dp is a call in the group that this is.
  const auto append = [&plan](const Share& share, Plan part) {
    for (Operation& operation : part.operations) {
      Call* call = std::get_if<Call>(&operation);
      if (call != nullptr && call->group == "dp") call->group = share.dp;
      plan.operations.push_back(std::move(operation));
    }
  };
  const std::vector<Share> shares = shares_at(training, grid, place);
  for (const Share& share : shares) {
    Plan reduced{share.layout.grid, share.place, {}};
    plan_reduced_shards(reduced, share.layout);
    append(share, std::move(reduced));
  }
  const Index experts = shares.size() > 1 ? shares[1].layout.shard_elements(shares[1].place.dp) : 0;
  plan_clip_shards(plan, shares[0].layout, counted_elsewhere(training, grid, place.pp), experts);
  for (const Share& share : shares)
    append(share, GroupedOptimizer(training_groups(training), {}).plan(share.layout, share.place));
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
    PartGradients leaf = serial_leaf(training_.config, model, batch[i], training_.scale());
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
