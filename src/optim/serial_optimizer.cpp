#include "src/optim/serial_optimizer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "src/errors.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/text/names.hpp"

namespace muonwalk {
namespace {

void check_gradient(const NamedMatrix& parameter, const Matrix& gradient, std::size_t leaf) {
  const Matrix& weights = parameter.matrix;
  if (gradient.rows() != weights.rows() || gradient.cols() != weights.cols()) {
    throw UsageError("Leaf " + std::to_string(leaf) + " of the gradient of parameter " + in_quotes(parameter.name) +
                     " is " + shape_text(gradient.rows(), gradient.cols()) + ", but the parameter is " +
                     shape_text(weights.rows(), weights.cols()) + "; give a gradient of the parameter's shape.");
  }
  for (Index i = 0; i < gradient.rows(); ++i) {
    for (Index j = 0; j < gradient.cols(); ++j) {
      if (std::isfinite(gradient(i, j))) continue;
      throw UsageError("Leaf " + std::to_string(leaf) + " of the gradient of parameter " + in_quotes(parameter.name) +
                       " holds " + (std::isnan(gradient(i, j)) ? "a NaN" : "an infinity") + " at row " +
                       std::to_string(i) + ", column " + std::to_string(j) +
                       ", from which no step can be made; give finite gradients.");
    }
  }
}

}  // namespace

void SerialOptimizer::scale_learning_rates(float) {
  throw std::logic_error(
      "A serial optimizer was asked to scale its learning rate, but it has none that changes; take one that implements "
      "scale_learning_rates.");
}

float scaled_rate(float rate, float factor) {
  if (!(factor >= 0) || !std::isfinite(factor))
    throw std::invalid_argument(
        fmt::format("A learning rate was to be scaled by {:g}; a factor is finite and at least 0.", factor));
  return rate * factor;
}

void require_gradients(const std::vector<NamedMatrix>& parameters, const std::vector<std::vector<Matrix>>& gradients) {
  if (gradients.empty()) throw UsageError("A step was asked for without a gradient; give at least one leaf.");
  for (std::size_t leaf = 0; leaf < gradients.size(); ++leaf) {
    if (gradients[leaf].size() != parameters.size()) {
      throw UsageError("Leaf " + std::to_string(leaf) + " holds the gradients of " +
                       std::to_string(gradients[leaf].size()) + " parameters, but there are " +
                       std::to_string(parameters.size()) + "; give one gradient per parameter.");
    }
    for (std::size_t p = 0; p < parameters.size(); ++p) check_gradient(parameters[p], gradients[leaf][p], leaf);
  }
}

Matrix summed_gradient(const std::vector<std::vector<Matrix>>& gradients, std::size_t p) {
  std::vector<const float*> leaves;
  for (const std::vector<Matrix>& leaf : gradients) leaves.push_back(leaf[p].data());
  Matrix sum(gradients[0][p].rows(), gradients[0][p].cols());
  tree_sum(leaves, sum.size(), sum.data());
  return sum;
}

}  // namespace muonwalk
