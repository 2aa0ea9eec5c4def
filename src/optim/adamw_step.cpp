#include "src/optim/adamw_step.hpp"

#include <utility>

#include "src/optim/serial_adamw.hpp"

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
