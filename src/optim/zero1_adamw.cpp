#include "src/optim/zero1_adamw.hpp"

#include <utility>

#include "src/optim/full_step.hpp"

namespace muonwalk {

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

Optimizer::Keeping Zero1AdamW::keeping() {
  Keeping own = AdamW::keeping();
  for (Keeping::Item& item : own.items) item.whole = false;
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

}  // namespace muonwalk
