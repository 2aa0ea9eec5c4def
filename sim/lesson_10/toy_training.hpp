#pragma once

#include <string>
#include <vector>

#include "sim/world/options.hpp"
#include "src/optim/adamw.hpp"
#include "src/train/training.hpp"

namespace muonwalk::sim {

/// The elements of the bias.
constexpr Index kToyBias = 8;

/// The settings of Muon that a seat asks for, with a learning rate at which a loss falls in three steps.
MuonSettings toy_settings(const Seat& seat);

/// A training whose loss falls: its weights are to come near a target, random numbers of its own. Each leaf sees the
/// way there through noise of its own, so each DP rank has another gradient.
class ToyTraining : public Training {
 public:
  /// `seed` decides all values.
  ToyTraining(std::vector<Parameter> parameters, int steps, std::uint64_t seed);

  const std::vector<Parameter>& parameters() const override { return noise_.parameters(); }
  int steps() const override { return noise_.steps(); }
  int leaves_per_rank(int dp) const override { return noise_.leaves_per_rank(dp); }
  Matrix weights(int p) const override { return noise_.weights(p); }
  std::vector<Matrix> gradients(int step, int leaf, const std::vector<NamedMatrix>& held) const override;

  /// A bias that AdamW trains beside the matrices: as it is before the first step, what DP rank `dp_rank` computes of
  /// its gradient in a step (counted from 0), and its weights under their name.
  /// @{
  AdamWState first_bias() const;
  Flat bias_gradient(int step, int dp_rank) const;
  NamedMatrix named_bias(const AdamWState& bias) const;
  /// @}

  /// The mean squared distance of all weights from the target. held[rank] are the slices of all parameters, as
  /// join_held_slices takes them.
  double loss(const Grid& grid, const std::vector<std::vector<NamedMatrix>>& held) const;

 private:
  Matrix target(const NamedMatrix& held) const;

  RandomTraining noise_;  // and first weights
  std::uint64_t seed_;
};

/// "loss 2.00 → 1.81 → 1.63: it falls in every step"; empty where there is none.
std::string loss_text(const std::vector<double>& losses);

}  // namespace muonwalk::sim
