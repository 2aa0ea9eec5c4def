#pragma once

#include "src/optim/adamw_step.hpp"

namespace muonwalk {

/// AdamW whose moments are sharded over the DP ranks (ZeRO-1; Megatron-LM's distributed optimizer): bucket by bucket, a
/// reduce-scatter of gradients, AdamW on the elements that this rank owns, and an all-gather of weights. It has the
/// bits of AdamW that shards nothing, and keeps as many moments as it owns elements.
class Zero1AdamW : public AdamW {
 public:
  /// Takes nothing yet.
  explicit Zero1AdamW(const AdamWSettings& settings) : AdamW(settings) {}

  std::string name() const override { return "ZeRO-1 AdamW"; }
  void start(const Layout& layout, const Place& place, Buckets weights) override;
  void step(const StepContext& context, const BucketsView& gradients) override;
  Plan plan(const Layout& layout, const Place& place) const override;

 protected:
  /// The same moments, but shards of them.
  StateTensors state_tensors() override;
};

}  // namespace muonwalk
