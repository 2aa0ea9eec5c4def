#pragma once

#include "src/optim/adamw.hpp"
#include "src/optim/optimizer.hpp"

namespace muonwalk {

/// What AdamW keeps on one rank between steps where nothing is sharded over data-parallel ranks: its TP slices of all
/// weights and both their moments, whole buckets, the same on every DP rank.
struct AdamWBuckets {
  Buckets weights;        ///< updated in place
  Buckets first_moment;   ///< zeros before the first step
  Buckets second_moment;  ///< zeros before the first step
  int steps = 0;          ///< that were taken
};

/// The state before the first step: these weights (pack_buckets) and moments of zero.
AdamWBuckets initial_adamw_buckets(const Layout& layout, Buckets weights);

/// The phases of a step of data-parallel AdamW.
namespace phases {
/// Each announced to the observer as it begins.
/// @{
constexpr Phase all_reduce_gradients = "all-reduce of gradients";
constexpr Phase adamw = "AdamW";
/// @}
}  // namespace phases

/// One step of data-parallel AdamW, bucket by bucket: an all-reduce of this rank's own `gradients` (whole buckets; the
/// sum over DP ranks is what counts), then AdamW on every element, which all DP ranks do alike. Throws
/// std::invalid_argument where the settings say that gradients are summed already: there are no shards to hand it.
void adamw_step(const StepContext& context, const AdamWSettings& settings, const BucketsView& gradients,
                AdamWBuckets& state);

/// What adamw_step does on the rank at `place`, as a list, from the layout alone; first what it holds as it begins.
Plan adamw_plan(const Layout& layout, const Place& place);

/// AdamW as an optimizer: adamw_step with the same settings in every step.
class AdamW : public Optimizer {
 public:
  /// Takes nothing yet.
  explicit AdamW(const AdamWSettings& settings) : settings_(settings), unscaled_lr_(settings.lr) {}

  std::string name() const override { return "AdamW"; }
  void start(const Layout& layout, const Place&, Buckets weights) override;
  void step(const StepContext& context, const BucketsView& gradients) override;
  Plan plan(const Layout& layout, const Place& place) const override;
  BucketsView weights() const override { return state_.weights; }
  bool takes_summed_gradients() const override { return settings_.summed_gradients; }
  void scale_learning_rates(float factor) override { settings_.lr = scaled_rate(unscaled_lr_, factor); }
  std::unique_ptr<SerialOptimizer> reference(std::vector<NamedMatrix> parameters) const override;

 protected:
  AdamWSettings settings_;  ///< of the next step
  AdamWBuckets state_;      ///< as it is after the last one

  Keeping keeping() override;

 private:
  float unscaled_lr_;  // as it was given
};

}  // namespace muonwalk
