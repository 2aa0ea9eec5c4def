#pragma once

#include <vector>

#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// The reference: Muon on one process, full matrices, plain loops over parameters; it knows nothing of ranks or
/// layouts.
class SerialMuon {
 public:
  /// Starts from these weights with zero momentum.
  SerialMuon(std::vector<NamedMatrix> parameters, MuonSettings settings);

  /// One step. gradients[leaf][p] is leaf number `leaf`'s part of the gradient of parameter p (one leaf a data-parallel
  /// rank or micro-batch, in rank order). The leaves are added as a balanced binary tree (tree_sum.hpp). Throws
  /// UsageError when a gradient holds a NaN or infinity, or has another shape than its parameter.
  void step(const std::vector<std::vector<Matrix>>& gradients);

  /// The weights, in the order of the constructor.
  const std::vector<NamedMatrix>& parameters() const { return parameters_; }
  /// The momentum of each, in the same order and of the same shapes.
  const std::vector<NamedMatrix>& momentum() const { return momentum_; }

 private:
  std::vector<NamedMatrix> parameters_;
  std::vector<NamedMatrix> momentum_;
  MuonSettings settings_;
};

}  // namespace muonwalk
