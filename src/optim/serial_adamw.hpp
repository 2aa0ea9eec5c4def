#pragma once

#include "src/optim/adamw.hpp"
#include "src/optim/serial_optimizer.hpp"

namespace muonwalk {

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
