#include "src/optim/parameter_groups.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/optim/adamw_step.hpp"
#include "src/optim/full_step.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

bool any_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&name](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

// A serial optimizer for each group, and the parameters of all in the order in which they were given.
class SerialGroups : public SerialOptimizer {
 public:
  struct Part {
    std::unique_ptr<SerialOptimizer> optimizer;
    std::vector<std::size_t> numbers;  // of its parameters among all
  };

  SerialGroups(std::vector<NamedMatrix> parameters, std::vector<Part> parts)
      : parameters_(std::move(parameters)), parts_(std::move(parts)) {}

  void step(const std::vector<std::vector<Matrix>>& gradients) override {
    require_gradients(parameters_, gradients);
    for (const Part& part : parts_) {
      std::vector<std::vector<Matrix>> own(gradients.size());
      for (std::size_t leaf = 0; leaf < gradients.size(); ++leaf)
        for (const std::size_t p : part.numbers) own[leaf].push_back(gradients[leaf][p]);
      part.optimizer->step(own);
      for (std::size_t i = 0; i < part.numbers.size(); ++i)
        parameters_[part.numbers[i]].matrix = part.optimizer->parameters()[i].matrix;
    }
  }
  void scale_learning_rates(float factor) override {
    for (const Part& part : parts_) part.optimizer->scale_learning_rates(factor);
  }
  void skip_steps(int steps) override {
    for (const Part& part : parts_) part.optimizer->skip_steps(steps);
  }
  void go_on_from(const MuonMemory& kept) override {
    for (const Part& part : parts_) part.optimizer->go_on_from(kept);
  }
  void keep_in(MuonMemory& kept) const override {
    for (const Part& part : parts_) part.optimizer->keep_in(kept);
  }
  const std::vector<NamedMatrix>& parameters() const override { return parameters_; }

 private:
  std::vector<NamedMatrix> parameters_;
  std::vector<Part> parts_;
};

}  // namespace

bool Claim::holds(const Parameter& whole) const {
  return (dims == 0 || whole.dims == dims) && (names.empty() || any_matches(names, whole.name)) &&
         !any_matches(except, whole.name);
}

std::vector<Parameter> route(std::vector<Parameter> parameters, const std::vector<ParameterGroup>& groups) {
  for (Parameter& parameter : parameters) {
    std::vector<int> claiming;
    for (std::size_t g = 0; g < groups.size(); ++g)
      if (groups[g].claim.holds(parameter)) claiming.push_back(static_cast<int>(g));
    if (claiming.empty())
      throw UsageError(
          fmt::format("parameter {} with {} dimension{} is claimed by no group, so nothing would ever "
                      "train it; let the claim of one hold for it",
                      in_quotes(parameter.name), parameter.dims, parameter.dims == 1 ? "" : "s"));
    if (claiming.size() > 1)
      throw UsageError(fmt::format(
          "parameter {} is claimed by the groups {} and {}, but one optimizer has to step it; "
          "except it from one of them",
          in_quotes(parameter.name), in_quotes(groups[claiming[0]].name), in_quotes(groups[claiming[1]].name)));
    parameter.group = claiming[0];
  }
  return parameters;
}

std::vector<std::string> usual_outer_layers() { return {"*embed*", "*wte*", "*wpe*", "*lm_head*", "output.weight"}; }

std::vector<ParameterGroup> usual_groups(const MuonSettings& muon, const AdamWSettings& adamw,
                                         const std::vector<std::string>& outer_layers) {
  AdamWSettings no_decay = adamw;
  no_decay.weight_decay = 0;
  return {{"hidden matrices", {2, {}, outer_layers}, [muon] { return std::make_unique<Muon>(muon); }},
          {"embeddings and output", {2, outer_layers, {}}, [adamw] { return std::make_unique<Zero1AdamW>(adamw); }},
          {"vectors", {1, {}, {}}, [no_decay] { return std::make_unique<Zero1AdamW>(no_decay); }}};
}

GroupedOptimizer::GroupedOptimizer(const std::vector<ParameterGroup>& groups,
                                   const std::vector<Parameter>& parameters) {
  for (const ParameterGroup& group : groups) optimizers_.push_back(group.make());
  for (std::size_t g = 1; g < groups.size(); ++g)
    if (optimizers_[g]->takes_summed_gradients() != optimizers_[0]->takes_summed_gradients())
      throw std::invalid_argument(
          fmt::format("the optimizers of the groups {} and {} do not agree on whether gradients are summed before a "
                      "step; set summed_gradients for all or for none",
                      in_quotes(groups[0].name), in_quotes(groups[g].name)));
  for (const Parameter& parameter : parameters) group_of_[parameter.name] = parameter.group;
}

std::string GroupedOptimizer::name() const {
  std::vector<std::string> names;
  for (const auto& each : optimizers_)
    if (std::find(names.begin(), names.end(), each->name()) == names.end()) names.push_back(each->name());
  return fmt::format("{}", fmt::join(names, " + "));
}

void GroupedOptimizer::start(const Layout& layout, const Place& place, Buckets weights) {
  started_.clear();
  for (std::size_t b = 0; b < layout.buffers.size(); ++b) {
    const int group = layout.buffers[b].group;
    if (group < 0 || group >= static_cast<int>(optimizers_.size()))
      throw std::invalid_argument(
          fmt::format("the layout has a buffer of parameter group {}, but there are {} groups, "
                      "counted from 0; plan it from routed parameters",
                      group, optimizers_.size()));
    Buckets own;
    own.push_back(std::move(weights[b]));
    optimizers_[group]->start(layout.of_group(group), place, std::move(own));
    started_.push_back(group);
  }
}

void GroupedOptimizer::step(const StepContext& context, const BucketsView& gradients) {
  require_fitting("GroupedOptimizer", context,
                  {{"weights", weights()}, {"gradients", gradients, /*whole=*/!takes_summed_gradients()}});
  for (std::size_t b = 0; b < started_.size(); ++b) {
    const Layout part = context.layout.of_group(started_[b]);
    optimizers_[started_[b]]->step({part, context.place, context.dp, context.tp, context.observer, context.monitor},
                                   gradients[b]);
  }
}

Plan GroupedOptimizer::plan(const Layout& layout, const Place& place) const {
  if (layout.buffers.size() == 1) return optimizers_.at(layout.buffers[0].group)->plan(layout, place);
  Plan plan{layout.grid, place, {}};
  std::vector<Operation> steps;
  for (const Buffer& buffer : layout.buffers) {
    const Plan part = optimizers_.at(buffer.group)->plan(layout.of_group(buffer.group), place);
    const auto begin = std::find_if_not(part.operations.begin(), part.operations.end(), [](const Operation& operation) {
      return std::holds_alternative<Memory>(operation);
    });
    plan.operations.insert(plan.operations.end(), part.operations.begin(), begin);
    steps.insert(steps.end(), begin, part.operations.end());
  }
  plan.operations.insert(plan.operations.end(), steps.begin(), steps.end());
  return plan;
}

BucketsView GroupedOptimizer::weights() const {
  BucketsView all;
  for (const int group : started_) all.append(optimizers_[group]->weights());
  return all;
}

bool GroupedOptimizer::takes_summed_gradients() const {
  return !optimizers_.empty() && optimizers_[0]->takes_summed_gradients();
}

void GroupedOptimizer::scale_learning_rates(float factor) {
  for (const auto& each : optimizers_) each->scale_learning_rates(factor);
}

Optimizer::StateTensors GroupedOptimizer::state_tensors() {
  StateTensors all;
  for (std::size_t b = 0; b < started_.size(); ++b) {
    StateTensors part = state_tensors_of(*optimizers_[started_[b]]);
    for (StateTensors::Item& item : part.items) item.buffer = static_cast<int>(b);
    all.items.insert(all.items.end(), part.items.begin(), part.items.end());
    all.steps.insert(all.steps.end(), part.steps.begin(), part.steps.end());
  }
  return all;
}

std::unique_ptr<SerialOptimizer> GroupedOptimizer::reference(std::vector<NamedMatrix> parameters) const {
  std::vector<std::vector<NamedMatrix>> of_group(optimizers_.size());
  std::vector<SerialGroups::Part> parts(optimizers_.size());
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    const auto found = group_of_.find(parameters[p].name);
    if (found == group_of_.end())
      throw std::invalid_argument(in_quotes(parameters[p].name) + " is not one of the routed parameters");
    of_group[found->second].push_back(parameters[p]);
    parts[found->second].numbers.push_back(p);
  }
  for (std::size_t g = 0; g < parts.size(); ++g) parts[g].optimizer = optimizers_[g]->reference(std::move(of_group[g]));
  return std::make_unique<SerialGroups>(std::move(parameters), std::move(parts));
}

}  // namespace muonwalk
