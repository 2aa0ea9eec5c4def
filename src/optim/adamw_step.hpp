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
  int steps = 0;          ///< How many steps were taken.
};

/// The phases of a step of data-parallel AdamW.
namespace phases {
/// Each announced to the observer as it begins.
/// @{
constexpr Phase all_reduce_gradients = "all-reduce of gradients";
constexpr Phase adamw = "AdamW";
/// @}
}  // namespace phases

/// Data-parallel AdamW, bucket by bucket: an all-reduce of the ranks' gradients, then AdamW on every element, which all
/// DP ranks do alike. There are no shards to hand it, so gradients that are summed already are refused, in a step and
/// in a plan, with std::invalid_argument.
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
  AdamWSettings settings_;  ///< The settings of the next step.
  AdamWBuckets state_;      ///< The state after the last step.

  StateTensors state_tensors() override;

 private:
  float unscaled_lr_;  // as it was given
};

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

/// The reference: AdamW on one process, full matrices, plain loops over parameters.
class SerialAdamW : public SerialOptimizer {
 public:
  /// Starts from these weights with moments of zero.
  SerialAdamW(std::vector<NamedMatrix> parameters, AdamWSettings settings);

  void step(const std::vector<std::vector<Matrix>>& gradients) override;
  void scale_learning_rates(float factor) override { settings_.lr = scaled_rate(unscaled_lr_, factor); }
  void skip_steps(int steps) override { steps_ += steps; }
  const std::vector<NamedMatrix>& parameters() const override { return parameters_; }

 private:
  std::vector<NamedMatrix> parameters_;
  std::vector<Matrix> first_moments_, second_moments_;
  AdamWSettings settings_;  // of the next step
  float unscaled_lr_;       // as it was given
  int steps_ = 0;
};

}  // namespace muonwalk
