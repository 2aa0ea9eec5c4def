#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/optim/serial_optimizer.hpp"

namespace muonwalk {

/// One step of Muon for one matrix, in one process and in plain loops, as the proof of concept takes it: it reads no
/// setting that is another recipe's. Changes the weights `w` and the momentum `m`, with the gradient `g`; all three are
/// rows × cols. Throws UsageError, naming the parameter `name`, when the update holds a NaN or an infinity.
void muon_step(Matrix& w, Matrix& m, const Matrix& g, const MuonSettings& settings, const std::string& name);

/// What makes the matrix `x` of the parameter `name` orthogonal, as newton_schulz does.
using Orthogonalize =
    std::function<Matrix(const Matrix& x, const NewtonSchulzSettings& settings, const std::string& name)>;

/// muon_step for every recipe: one step for one matrix, in one process and in plain loops, with the
/// choices that the settings hold, and piece by piece where `name` is a fused matrix. With the defaults its bits are
/// those of muon_step, which is easier to read. Without `orthogonalize` it takes newton_schulz. `v` are the means of
/// settings.second_moment, of the whole matrix, and null where it is not used.
void recipe_step(Matrix& w, Matrix& m, const Matrix& g, const MuonSettings& settings, const std::string& name,
                 const Orthogonalize& orthogonalize = nullptr, Flat* v = nullptr);

/// The reference: a step for every matrix of a model, in one process: that of muon_step, or of another recipe
/// (recipe_step). It knows nothing of ranks or layouts.
class SerialMuon : public SerialOptimizer {
 public:
  /// Starts from these weights with zero momentum.
  SerialMuon(std::vector<NamedMatrix> parameters, MuonSettings settings);

  void step(const std::vector<std::vector<Matrix>>& gradients) override;
  void scale_learning_rates(float factor) override { settings_.lr = scaled_rate(unscaled_lr_, factor); }
  const std::vector<NamedMatrix>& parameters() const override { return parameters_; }
  void go_on_from(const MuonMemory& kept) override;
  void keep_in(MuonMemory& kept) const override;
  /// The momentum of each, in the same order and of the same shapes.
  const std::vector<NamedMatrix>& momentum() const { return momentum_; }

 protected:
  /// The step of one matrix, with the sum of its gradient's leaves: recipe_step.
  virtual void matrix_step(Matrix& w, Matrix& m, const Matrix& g, const std::string& name, Flat* v);

  MuonSettings settings_;  ///< The settings of the next step.

 private:
  float unscaled_lr_;  // as it was given
  std::vector<NamedMatrix> parameters_;
  std::vector<NamedMatrix> momentum_;
  std::vector<Flat> second_moment_;
};

}  // namespace muonwalk
