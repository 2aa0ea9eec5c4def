#include "src/optim/adamw_step.hpp"

#include <utility>

#include "src/optim/serial_adamw.hpp"

namespace muonwalk {

AdamWBuckets initial_adamw_buckets(const Layout& layout, Buckets weights) {
  return {std::move(weights), zero_buckets(layout), zero_buckets(layout)};
}

void adamw_step(const StepContext& context, const AdamWSettings& settings, const BucketsView& gradients,
                AdamWBuckets& state) {
  require_own_gradients("adamw_step", settings.summed_gradients);
  require_fitting("adamw_step", context,
                  {{"weights", state.weights},
                   {"first moments", state.first_moment},
                   {"second moments", state.second_moment},
                   {"gradients", gradients}});
  ++state.steps;
  for (std::size_t b = 0; b < gradients.size(); ++b) {
    for (std::size_t k = 0; k < gradients[b].size(); ++k) {
      context.begin(phases::all_reduce_gradients);
      const Flat sum = context.dp.all_reduce(gradients[b][k]);

      context.begin(phases::adamw);
      adamw(state.weights[b][k].data(), sum.data(), state.first_moment[b][k].data(), state.second_moment[b][k].data(),
            static_cast<Index>(sum.size()), state.steps, settings);
    }
  }
}

Plan adamw_plan(const Layout& layout, const Place& place) {
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

void AdamW::start(const Layout& layout, const Place&, Buckets weights) {
  state_ = initial_adamw_buckets(layout, std::move(weights));
}

Plan AdamW::plan(const Layout& layout, const Place& place) const {
  require_own_gradients("the plan of AdamW", settings_.summed_gradients);
  return adamw_plan(layout, place);
}

void AdamW::step(const StepContext& context, const BucketsView& gradients) {
  adamw_step(context, settings_, gradients, state_);
}

Optimizer::Keeping AdamW::keeping() {
  return {{{"first moments", &state_.first_moment, /*whole=*/true},
           {"second moments", &state_.second_moment, /*whole=*/true}},
          {&state_.steps}};
}

std::unique_ptr<SerialOptimizer> AdamW::reference(std::vector<NamedMatrix> parameters) const {
  AdamWSettings settings = settings_;
  settings.lr = unscaled_lr_;
  return std::make_unique<SerialAdamW>(std::move(parameters), settings);
}

}  // namespace muonwalk
