#include "src/optim/serial_muon.hpp"

#include <cmath>
#include <utility>

#include "src/errors.hpp"
#include "src/numerics/tree_sum.hpp"

namespace muonwalk {
namespace {

void check_gradient(const NamedMatrix& parameter, const Matrix& gradient, std::size_t leaf) {
  const Matrix& weights = parameter.matrix;
  if (gradient.rows() != weights.rows() || gradient.cols() != weights.cols()) {
    throw UsageError("Leaf " + std::to_string(leaf) + " of the gradient of parameter \"" + parameter.name + "\" is " +
                     shape_text(gradient.rows(), gradient.cols()) + ", but the parameter is " +
                     shape_text(weights.rows(), weights.cols()) + "; give a gradient of the parameter's shape.");
  }
  for (Index i = 0; i < gradient.rows(); ++i) {
    for (Index j = 0; j < gradient.cols(); ++j) {
      if (std::isfinite(gradient(i, j))) continue;
      throw UsageError("Leaf " + std::to_string(leaf) + " of the gradient of parameter \"" + parameter.name +
                       "\" holds " + (std::isnan(gradient(i, j)) ? "a NaN" : "an infinity") + " at row " +
                       std::to_string(i) + ", column " + std::to_string(j) +
                       ", from which no step can be made; give finite gradients.");
    }
  }
}

/// The leaves of parameter p's gradient, added as a balanced binary tree.
Matrix summed_gradient(const std::vector<std::vector<Matrix>>& gradients, std::size_t p, Index rows, Index cols) {
  std::vector<const float*> leaves;
  for (const std::vector<Matrix>& leaf : gradients) leaves.push_back(leaf[p].data());
  Matrix sum(rows, cols);
  tree_sum(leaves, sum.size(), sum.data());
  return sum;
}

}  // namespace

SerialMuon::SerialMuon(std::vector<NamedMatrix> parameters, MuonSettings settings)
    : parameters_(std::move(parameters)), settings_(settings) {
  for (const NamedMatrix& parameter : parameters_) {
    momentum_.push_back({parameter.name, Matrix(parameter.matrix.rows(), parameter.matrix.cols())});
  }
}

void SerialMuon::step(const std::vector<std::vector<Matrix>>& gradients) {
  if (gradients.empty()) throw UsageError("A step was asked for without a gradient; give at least one leaf.");
  for (std::size_t leaf = 0; leaf < gradients.size(); ++leaf) {
    if (gradients[leaf].size() != parameters_.size()) {
      throw UsageError("Leaf " + std::to_string(leaf) + " holds the gradients of " +
                       std::to_string(gradients[leaf].size()) + " parameters, but there are " +
                       std::to_string(parameters_.size()) + "; give one gradient a parameter.");
    }
    for (std::size_t p = 0; p < parameters_.size(); ++p) check_gradient(parameters_[p], gradients[leaf][p], leaf);
  }

  const float mu = settings_.momentum;
  const float keep = 1.0f - settings_.lr * settings_.weight_decay;
  NewtonSchulzSettings ns;
  ns.steps = settings_.ns_steps;
  ns.precision = settings_.precision;
  ns.products = settings_.products;
  ns.threads = settings_.threads;

  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    Matrix& w = parameters_[p].matrix;
    Matrix& m = momentum_[p].matrix;
    const Matrix g = summed_gradient(gradients, p, w.rows(), w.cols());

    Matrix u(w.rows(), w.cols());
    for (Index i = 0; i < w.rows(); ++i) {
      for (Index j = 0; j < w.cols(); ++j) {
        m(i, j) = mu * m(i, j) + g(i, j);
        u(i, j) = settings_.nesterov ? g(i, j) + mu * m(i, j) : m(i, j);
      }
    }
    if (settings_.precision == Precision::bf16) round_to_bf16(u.data(), u.size());

    const Matrix o = newton_schulz(u, ns, parameters_[p].name);

    const float scale = update_scale({w.rows(), w.cols()}, settings_);
    for (Index i = 0; i < w.rows(); ++i) {
      for (Index j = 0; j < w.cols(); ++j) {
        w(i, j) = w(i, j) * keep;
        w(i, j) = w(i, j) - scale * o(i, j);
      }
    }
  }
}

}  // namespace muonwalk
