#pragma once

#include <utility>

#include "src/optim/optimizer.hpp"
#include "src/optim/steps.hpp"

namespace muonwalk::test {

/// A third optimizer, all of it in this file, as whoever adds one would write it: SGD with momentum, whose momentum is
/// shared out over the DP ranks. m ← 0.9 m + g; w ← w − 0.01 m.
namespace momentum_sgd {

constexpr float kMomentum = 0.9f, kRate = 0.01f;
constexpr Phase kReduce = "reduce-scatter of gradients", kUpdate = "SGD", kGather = "all-gather of weights";

inline void update(float* weights, float* momentum, const float* gradient, Index count) {
  for (Index i = 0; i < count; ++i) {
    momentum[i] = kMomentum * momentum[i] + gradient[i];
    weights[i] = weights[i] - kRate * momentum[i];
  }
}

/// The reference: whole matrices, one after the other.
class Serial : public SerialOptimizer {
 public:
  explicit Serial(std::vector<NamedMatrix> parameters) : parameters_(std::move(parameters)) {
    for (const NamedMatrix& each : parameters_) momentum_.emplace_back(each.matrix.rows(), each.matrix.cols());
  }
  void step(const std::vector<std::vector<Matrix>>& gradients) override {
    require_gradients(parameters_, gradients);
    for (std::size_t p = 0; p < parameters_.size(); ++p) {
      Matrix& weights = parameters_[p].matrix;
      update(weights.data(), momentum_[p].data(), summed_gradient(gradients, p).data(), weights.size());
    }
  }
  const std::vector<NamedMatrix>& parameters() const override { return parameters_; }

 private:
  std::vector<NamedMatrix> parameters_;
  std::vector<Matrix> momentum_;
};

/// On one rank.
class Distributed : public Optimizer {
 public:
  std::string name() const override { return "momentum SGD"; }

  void start(const Layout& layout, const Place& place, Buckets weights) override {
    weights_ = std::move(weights);
    momentum_ = zero_shards(layout, place.dp);
    steps_ = 0;
  }

  void step(const StepContext& context, const BucketsView& gradients) override {
    require_fitting("momentum SGD", context, {{"gradients", gradients}, {"momentum", momentum_, false}});
    for (int b = 0; b < static_cast<int>(gradients.size()); ++b)
      for (int k = 0; k < static_cast<int>(gradients[b].size()); ++k) {
        const std::vector<Index> counts = context.layout.dp_counts(b, k);
        const Range own = context.layout.dp_slice(b, k, context.place.dp);
        context.begin(kReduce);
        const Flat sum = reduce_gradients(context.dp, gradients[b][k], counts);
        context.begin(kUpdate);
        update(weights_[b][k].data() + (own.begin - context.layout.buffers[b].buckets[k].range.begin),
               momentum_[b][k].data(), sum.data(), own.size());
        context.begin(kGather);
        all_gather_weights(context.dp, weights_[b][k], counts);
      }
    ++steps_;
  }

  Plan plan(const Layout& layout, const Place& place) const override {
    Plan plan{layout.grid, place, {}};
    for (const Buffer& buffer : layout.buffers) plan.take(2 * buffer.size, "weights and gradients");
    plan.take(layout.shard_elements(place.dp), "momentum");
    for (int b = 0; b < static_cast<int>(layout.buffers.size()); ++b)
      for (int k = 0; k < static_cast<int>(layout.buffers[b].buckets.size()); ++k) {
        const Index whole = layout.buffers[b].buckets[k].range.size();
        const Index own = layout.dp_slice(b, k, place.dp).size();
        plan.work(kReduce, {1, whole});
        plan.take(own, "sum");
        plan.call("dp", CollectiveKind::reduce_scatter, ElementType::float32, whole, own);
        plan.work(kUpdate, {1, own}, 4.0 * static_cast<double>(own));
        plan.work(kGather, {1, whole});
        plan.call("dp", CollectiveKind::all_gather, ElementType::float32, own, whole);
        plan.give_back(own, "sum");
      }
    return plan;
  }

  BucketsView weights() const override { return weights_; }
  std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const override {
    return std::make_unique<Serial>(std::move(parameters));
  }

 private:
  StateTensors state_tensors() override { return {{{{"momentum"}, &momentum_}}, {&steps_}}; }

  Buckets weights_, momentum_;
  int steps_ = 0;
};

}  // namespace momentum_sgd
}  // namespace muonwalk::test
