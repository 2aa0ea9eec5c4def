#include "src/optim/adamw_step.hpp"

#include <stdexcept>

#include "src/comm/predicted_traffic.hpp"

namespace muonwalk {

AdamWBuckets initial_adamw_buckets(const Buckets& weights) {
  AdamWBuckets state;
  for (const std::vector<Flat>& buffer : weights) {
    state.emplace_back();
    for (const Flat& bucket : buffer) state.back().push_back(initial_adamw_state(bucket));
  }
  return state;
}

Buckets weights_of(const AdamWBuckets& state) {
  Buckets weights;
  for (const std::vector<AdamWState>& buffer : state) {
    weights.emplace_back();
    for (const AdamWState& bucket : buffer) weights.back().push_back(bucket.weights);
  }
  return weights;
}

void adamw_step(Communicator& dp, const Buckets& gradients, AdamWBuckets& state, int step,
                const AdamWSettings& settings, const std::function<void(const char* phase)>& observer) {
  if (gradients.size() != state.size()) throw std::invalid_argument("adamw_step: not as many buffers as the state has");
  const auto begin = [&observer](const char* phase) {
    if (observer) observer(phase);
  };
  for (std::size_t b = 0; b < state.size(); ++b) {
    if (gradients[b].size() != state[b].size())
      throw std::invalid_argument("adamw_step: not as many buckets as the state has");
    for (std::size_t k = 0; k < state[b].size(); ++k) {
      begin("all-reduce of gradients");
      const Flat sum = dp.all_reduce(gradients[b][k]);

      begin("AdamW");
      adamw(state[b][k], sum, step, settings);
    }
  }
}

Ledger predict_adamw_step(const Layout& layout, const Place& place) {
  Ledger ledger;
  const int dp = layout.grid.dp();
  for (const Buffer& buffer : layout.buffers)
    for (const Bucket& bucket : buffer.buckets)
      ledger.add("dp", CollectiveKind::all_reduce, ElementType::float32, 1,
                 all_reduce_traffic(place.dp, dp, bucket.range.size(), ElementType::float32));
  return ledger;
}

Index state_elements(const AdamWBuckets& state) {
  Index elements = 0;
  for (const std::vector<AdamWState>& buffer : state)
    for (const AdamWState& bucket : buffer)
      elements += static_cast<Index>(bucket.first_moment.size() + bucket.second_moment.size());
  return elements;
}

Index state_elements(const MuonState& state) {
  Index elements = 0;
  for (const std::vector<Flat>& buffer : state.momentum)
    for (const Flat& shard : buffer) elements += static_cast<Index>(shard.size());
  return elements;
}

}  // namespace muonwalk
