#include "src/optim/serial_muon.hpp"

#include <utility>

#include "src/optim/serial_recipe.hpp"

namespace muonwalk {

SerialMuon::SerialMuon(std::vector<NamedMatrix> parameters, MuonSettings settings)
    : settings_(std::move(settings)), unscaled_lr_(settings_.lr), parameters_(std::move(parameters)) {
  for (const NamedMatrix& parameter : parameters_) {
    momentum_.push_back({parameter.name, Matrix(parameter.matrix.rows(), parameter.matrix.cols())});
  }
}

// README.md and the start page show this function (docs/make/serial_muon.py). Every line that computes says at its end
// how much of the matrix it needs.
void muon_step(Matrix& w, Matrix& m, const Matrix& g, const MuonSettings& settings, const std::string& name) {
  const bool bf16 = settings.newton_schulz.precision == Precision::bf16;
  const float mu = settings.momentum;
  const float keep = 1.0f - settings.lr * settings.weight_decay;
  const float scale = update_scale({w.rows(), w.cols()}, settings);  // lr · 0.2 · √max(rows, cols) of the whole

  Matrix u(w.rows(), w.cols());
  for (Index i = 0; i < w.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) {
      m(i, j) = mu * m(i, j) + g(i, j);                                // elementwise: any shard will do
      u(i, j) = settings.nesterov ? g(i, j) + mu * m(i, j) : m(i, j);  // elementwise: any shard will do
    }
  }
  if (bf16) round_to_bf16(u.data(), u.size());  // elementwise: any shard will do

  // X = u / ‖u‖; five times: A = X Xᵀ, B = b A + (c A) A, X ← a X + B X; o = X.
  const Matrix o = newton_schulz(u, settings.newton_schulz, name);  // needs the whole matrix

  for (Index i = 0; i < w.rows(); ++i) {
    for (Index j = 0; j < w.cols(); ++j) {
      w(i, j) = w(i, j) * keep;             // elementwise: any shard will do
      w(i, j) = w(i, j) - scale * o(i, j);  // elementwise: any shard will do
    }
  }
}

void SerialMuon::step(const std::vector<std::vector<Matrix>>& gradients) {
  require_gradients(parameters_, gradients);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    matrix_step(parameters_[p].matrix, momentum_[p].matrix, summed_gradient(gradients, p), parameters_[p].name);
  }
}

void SerialMuon::matrix_step(Matrix& w, Matrix& m, const Matrix& g, const std::string& name) {
  recipe_step(w, m, g, settings_, name);
}

}  // namespace muonwalk
