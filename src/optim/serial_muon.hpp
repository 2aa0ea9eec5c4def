#pragma once

#include <vector>

#include "src/optim/serial_optimizer.hpp"

namespace muonwalk {

/// The reference: Muon on one process, full matrices, plain loops over parameters; it knows nothing of ranks or
/// layouts.
class SerialMuon : public SerialOptimizer {
 public:
  /// Starts from these weights with zero momentum.
  SerialMuon(std::vector<NamedMatrix> parameters, MuonSettings settings);

  void step(const std::vector<std::vector<Matrix>>& gradients) override;
  const std::vector<NamedMatrix>& parameters() const override { return parameters_; }
  /// The momentum of each, in the same order and of the same shapes.
  const std::vector<NamedMatrix>& momentum() const { return momentum_; }

 private:
  std::vector<NamedMatrix> parameters_;
  std::vector<NamedMatrix> momentum_;
  MuonSettings settings_;
};

}  // namespace muonwalk
