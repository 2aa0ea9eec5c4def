#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// What Muon keeps of a model between two steps, by the names of parameters, as whole matrices.
struct MuonMemory {
  std::map<std::string, Matrix> momentum;      ///< Of the shape of the parameter.
  std::map<std::string, Flat> second_moments;  ///< MuonSettings::second_moment's means; none where it is not used.
};

/// An optimizer on one process, as plain loops over whole matrices: what ranks are compared with, bit for bit. It knows
/// nothing of ranks, layouts or buffers.
class SerialOptimizer {
 public:
  virtual ~SerialOptimizer() = default;
  /// One step. gradients[leaf][p] is leaf number `leaf`'s part of the gradient of parameter p (one leaf per
  /// data-parallel rank or micro-batch, in rank order). The leaves are added as a balanced binary tree (tree_sum.hpp).
  /// Throws UsageError where a gradient holds a NaN or an infinity, or does not have its parameter's shape.
  virtual void step(const std::vector<std::vector<Matrix>>& gradients) = 0;
  /// The same schedule as Optimizer::scale_learning_rates, to the bit. Throws as that does.
  virtual void scale_learning_rates(float factor);
  /// Counts this many steps that were never taken, for those that depend on how many there were before: the reference
  /// of ranks that go on from a checkpoint with another number of steps. Changes nothing where none does.
  virtual void skip_steps(int /*steps*/) {}
  /// Goes on, before its first step, from what a Muon has kept; of parameters that are not in it, and where nothing is
  /// kept by these names, it begins anew.
  virtual void go_on_from(const MuonMemory& /*kept*/) {}
  /// Adds what it would keep, as a Muon.
  virtual void keep_in(MuonMemory& /*kept*/) const {}
  /// The weights, in the order in which they were given.
  virtual const std::vector<NamedMatrix>& parameters() const = 0;
};

/// A learning rate as a schedule scales it: one product, in float32, which ranks and references share. Throws
/// std::invalid_argument for a factor that is not finite or below 0.
float scaled_rate(float rate, float factor);

/// Refuses a step's gradients ([leaf][p]) that make no sense: no leaf, a leaf without one gradient per parameter, a
/// gradient of another shape, or one with a NaN or an infinity. Throws UsageError, one sentence.
void require_gradients(const std::vector<NamedMatrix>& parameters, const std::vector<std::vector<Matrix>>& gradients);

/// The leaves of parameter p's gradient, added as a balanced binary tree.
Matrix summed_gradient(const std::vector<std::vector<Matrix>>& gradients, std::size_t p);

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
