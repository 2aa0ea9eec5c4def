#include "src/optim/adamw_step.hpp"

#include <utility>

#include "src/optim/full_step.hpp"

namespace muonwalk {

void AdamW::start(const Layout& layout, const Place&, Buckets weights) {
  state_ = {std::move(weights), zero_buckets(layout), zero_buckets(layout)};
}

void AdamW::step(const StepContext& context, const BucketsView& gradients) {
  require_own_gradients("AdamW", settings_.summed_gradients);
  require_fitting("AdamW", context,
                  {{"weights", state_.weights},
                   {"first moments", state_.first_moment},
                   {"second moments", state_.second_moment},
                   {"gradients", gradients}});
  ++state_.steps;
  for (const auto& [b, k] : context.layout.all_buckets()) {
    context.begin(phases::all_reduce_gradients);
    const Flat sum = context.dp.all_reduce(gradients[b][k]);

    context.begin(phases::adamw);
    adamw(state_.weights[b][k].data(), sum.data(), state_.first_moment[b][k].data(), state_.second_moment[b][k].data(),
          static_cast<Index>(sum.size()), state_.steps, settings_);
  }
}

Plan AdamW::plan(const Layout& layout, const Place& place) const {
  require_own_gradients("the plan of AdamW", settings_.summed_gradients);
  Plan plan = plan_of_held(layout, place, {"weights", "gradients", "first moments", "second moments"}, {});
  for (const BucketNumber bucket : layout.all_buckets()) {
    const Index whole = layout.bucket(bucket).range.size();
    plan.work(phases::all_reduce_gradients, {1, whole});
    plan.take(whole, "sum");
    plan.call("dp", CollectiveKind::all_reduce, ElementType::float32, whole, whole);
    plan.work(phases::adamw, {1, whole}, kAdamWFlops * static_cast<double>(whole));
    plan.give_back(whole, "sum");
  }
  return plan;
}

Optimizer::StateTensors AdamW::state_tensors() {
  return {{{{"first moments", /*whole=*/true}, &state_.first_moment},
           {{"second moments", /*whole=*/true}, &state_.second_moment}},
          {&state_.steps}};
}

std::unique_ptr<SerialOptimizer> AdamW::reference(std::vector<NamedMatrix> parameters) const {
  AdamWSettings settings = settings_;
  settings.lr = unscaled_lr_;
  return std::make_unique<SerialAdamW>(std::move(parameters), settings);
}

void Zero1AdamW::start(const Layout& layout, const Place& place, Buckets weights) {
  state_ = {std::move(weights), zero_shards(layout, place.dp), zero_shards(layout, place.dp)};
}

void Zero1AdamW::step(const StepContext& context, const BucketsView& gradients) {
  require_fitting("Zero1AdamW", context,
                  {{"weights", state_.weights},
                   {"first moments", state_.first_moment, /*whole=*/false},
                   {"second moments", state_.second_moment, /*whole=*/false},
                   {"gradients", gradients, /*whole=*/!settings_.summed_gradients}});
  ++state_.steps;
  for (const auto& [b, k] : context.layout.all_buckets()) {
    const std::vector<Index> counts = context.layout.dp_counts(b, k);
    const Range own = context.layout.dp_slice(b, k, context.place.dp);
    Flat& weights = state_.weights[b][k];

    Flat sum;  // for what I own; where I was handed that, it stays empty
    if (!settings_.summed_gradients) {
      context.begin(phases::reduce_gradients);
      sum = reduce_gradients(context.dp, gradients[b][k], counts);
    }
    const Flat& gradient = settings_.summed_gradients ? gradients[b][k] : sum;

    context.begin(phases::adamw);
    adamw(weights.data() + (own.begin - context.layout.bucket({b, k}).range.begin), gradient.data(),
          state_.first_moment[b][k].data(), state_.second_moment[b][k].data(), own.size(), state_.steps, settings_);

    context.begin(phases::gather_weights);
    all_gather_weights(context.dp, weights, counts);
  }
}

Optimizer::StateTensors Zero1AdamW::state_tensors() {
  StateTensors own = AdamW::state_tensors();
  for (StateTensors::Item& item : own.items) item.whole = false;
  return own;
}

Plan Zero1AdamW::plan(const Layout& layout, const Place& place) const {
  const bool summed = settings_.summed_gradients;
  Plan plan = summed ? plan_of_held(layout, place, {"weights"}, {"gradients", "first moments", "second moments"})
                     : plan_of_held(layout, place, {"weights", "gradients"}, {"first moments", "second moments"});
  for (const auto& [b, k] : layout.all_buckets()) {
    const Index whole = layout.bucket({b, k}).range.size();
    const Index own = layout.dp_slice(b, k, place.dp).size();
    if (!summed) {
      plan.work(phases::reduce_gradients, {1, whole});
      plan.take(own, "sum");
      plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32, whole, own);
    }
    plan.work(phases::adamw, {1, own}, kAdamWFlops * static_cast<double>(own));
    plan.work(phases::gather_weights, {1, whole});
    plan.call("dp", CollectiveKind::all_gather, ElementType::float32, own, whole);
    if (!summed) plan.give_back(own, "sum");
  }
  return plan;
}

SerialAdamW::SerialAdamW(std::vector<NamedMatrix> parameters, AdamWSettings settings)
    : parameters_(std::move(parameters)), settings_(settings), unscaled_lr_(settings.lr) {
  for (const NamedMatrix& parameter : parameters_) {
    first_moments_.emplace_back(parameter.matrix.rows(), parameter.matrix.cols());
    second_moments_.emplace_back(parameter.matrix.rows(), parameter.matrix.cols());
  }
}

void SerialAdamW::step(const std::vector<std::vector<Matrix>>& gradients) {
  require_gradients(parameters_, gradients);
  ++steps_;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    Matrix& w = parameters_[p].matrix;
    const Matrix g = summed_gradient(gradients, p);
    adamw(w.data(), g.data(), first_moments_[p].data(), second_moments_[p].data(), w.size(), steps_, settings_);
  }
}

}  // namespace muonwalk
