#include "src/optim/serial_adamw.hpp"

#include <utility>

namespace muonwalk {

SerialAdamW::SerialAdamW(std::vector<NamedMatrix> parameters, AdamWSettings settings)
    : parameters_(std::move(parameters)), settings_(settings), unscaled_lr_(settings.lr) {
  for (const NamedMatrix& parameter : parameters_) {
    first_moments_.emplace_back(parameter.matrix.rows(), parameter.matrix.cols());
    second_moments_.emplace_back(parameter.matrix.rows(), parameter.matrix.cols());
  }
}

void SerialAdamW::step(const std::vector<std::vector<Matrix>>& gradients) {
  require_gradients(parameters_, gradients);
  ++steps_;
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    Matrix& w = parameters_[p].matrix;
    const Matrix g = summed_gradient(gradients, p);
    adamw(w.data(), g.data(), first_moments_[p].data(), second_moments_[p].data(), w.size(), steps_, settings_);
  }
}

}  // namespace muonwalk
