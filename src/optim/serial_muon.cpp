#include "src/optim/serial_muon.hpp"

#include <utility>

namespace muonwalk {

SerialMuon::SerialMuon(std::vector<NamedMatrix> parameters, MuonSettings settings)
    : parameters_(std::move(parameters)), settings_(settings) {
  for (const NamedMatrix& parameter : parameters_) {
    momentum_.push_back({parameter.name, Matrix(parameter.matrix.rows(), parameter.matrix.cols())});
  }
}

void SerialMuon::step(const std::vector<std::vector<Matrix>>& gradients) {
  require_gradients(parameters_, gradients);

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
    const Matrix g = summed_gradient(gradients, p);

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
