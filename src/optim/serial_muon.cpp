#include "src/optim/serial_muon.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "src/errors.hpp"
#include "src/numerics/bfloat16.hpp"
#include "src/numerics/fused.hpp"
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

// X / √v, line by line, and back to the norm of X; a line is a row of X, or with `longer_side` what X has more of.
void serial_second_moment(Matrix& x, Flat& v, const SecondMoment& settings) {
  const bool columns = settings.longer_side && x.cols() > x.rows();
  double norm = 0, new_norm = 0;  // their squares
  std::vector<double> of_line(v.size());
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.cols(); ++j) of_line[columns ? j : i] += static_cast<double>(x(i, j)) * x(i, j);
  for (const double squares : of_line) norm += squares;
  const double unit = settings.unit_norm && norm > 0 ? static_cast<double>(std::min(x.rows(), x.cols())) / norm : 1;
  for (std::size_t line = 0; line < v.size(); ++line) {
    const float now = static_cast<float>(unit * of_line[line] / static_cast<double>(columns ? x.rows() : x.cols()));
    const float weight = 1 - settings.beta2;
    v[line] = weight < 0.5f ? fused(weight, now - v[line], v[line]) : fused(weight - 1, now - v[line], now);
    of_line[line] = 0;
  }
  for (Index i = 0; i < x.rows(); ++i)
    for (Index j = 0; j < x.cols(); ++j) {
      const float vi = v[columns ? j : i];
      x(i, j) /= settings.floor ? std::sqrt(std::max(vi, settings.epsilon)) : std::sqrt(vi) + settings.epsilon;
      of_line[columns ? j : i] += static_cast<double>(x(i, j)) * x(i, j);
    }
  for (const double squares : of_line) new_norm += squares;
  const float back = new_norm > 0 ? static_cast<float>(std::sqrt(unit * norm / new_norm)) : 1;
  for (Index i = 0; i < x.size(); ++i) x.data()[i] *= back;
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

SerialMuon::SerialMuon(std::vector<NamedMatrix> parameters, MuonSettings settings)
    : settings_(std::move(settings)), unscaled_lr_(settings_.lr), parameters_(std::move(parameters)) {
  for (const NamedMatrix& parameter : parameters_) {
    const Shape shape{parameter.matrix.rows(), parameter.matrix.cols()};
    momentum_.push_back({parameter.name, Matrix(shape.rows, shape.cols)});
    second_moment_.push_back(Flat(static_cast<std::size_t>(settings_.second_moment.count(shape))));
  }
}

// README.md and the start page show this function (docs/make/serial_muon.py). Every line that computes says at its end
// how much of the matrix it needs.
void muon_step(Matrix& w, Matrix& m, const Matrix& g, const MuonSettings& settings, const std::string& name) {
  const bool bf16 = settings.newton_schulz.precision == Precision::bf16;
  const float mu = static_cast<float>(settings.momentum);
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

void recipe_step(Matrix& w, Matrix& m, const Matrix& g, const MuonSettings& settings, const std::string& name,
                 const Orthogonalize& orthogonalize, Flat* v) {
  const bool bf16 = settings.newton_schulz.precision == Precision::bf16;
  const ElementArithmetic& how = settings.arithmetic;
  const float lr = settings.lr, mu = static_cast<float>(settings.momentum);
  const float of_new = how.float_momentum ? 1 - mu : static_cast<float>(1 - settings.momentum);

  // Momentum: a sum of gradients, or a mean of them. Between two numbers, torch.lerp goes from the nearer one.
  const auto towards = [](float from, float to, float weight) {
    return weight < 0.5f ? fused(weight, to - from, from) : fused(weight - 1, to - from, to);
  };
  Matrix u(w.rows(), w.cols());
  for (Index i = 0; i < w.size(); ++i) {
    float& mi = m.data()[i];
    const float gi = g.data()[i];
    if (how.lerp) {
      mi = towards(mi, gi, of_new);
      u.data()[i] = settings.nesterov ? towards(gi, mi, mu) : mi;
    } else {
      mi = mu * mi + gi;
      u.data()[i] = !settings.nesterov ? mi : how.fused ? fused(mu, mi, gi) : gi + mu * mi;
    }
    if (bf16 && settings.newton_schulz.normalization.round_first) u.data()[i] = nearest_bf16(u.data()[i]);
  }

  // Which rows are orthogonalized together: all, or those of each projection.
  std::vector<std::vector<Index>> pieces;
  if (settings.fused.count(name) == 0) {
    pieces.emplace_back();
    for (Index row = 0; row < w.rows(); ++row) pieces.back().push_back(row);
  } else {
    for (const Piece& piece : settings.fused.at(name)) {
      pieces.emplace_back();
      for (const Range& range : piece.rows)
        for (Index row = range.begin; row < range.end; ++row) pieces.back().push_back(row);
    }
  }

  for (const std::vector<Index>& rows : pieces) {
    const Index count = static_cast<Index>(rows.size());
    Matrix o(count, w.cols());
    for (Index i = 0; i < count; ++i)
      for (Index j = 0; j < w.cols(); ++j) o(i, j) = u(rows[i], j);
    o = orthogonalize ? orthogonalize(o, settings.newton_schulz, name) : newton_schulz(o, settings.newton_schulz, name);
    if (v != nullptr) serial_second_moment(o, *v, settings.second_moment);

    // The scale is that of the piece, as if it were a parameter of its own.
    const float rms = how.scale == Scale::matched_rms ? settings.rms : 1.0f;
    const float root = shape_scale({count, w.cols()}, how.scale);
    const float decay = lr * settings.weight_decay * (how.decay_scaled ? root : 1);
    const std::vector<float> factors = how.scaling == Scaling::once    ? std::vector<float>{lr * rms * root}
                                       : how.scaling == Scaling::twice ? std::vector<float>{rms * root, lr}
                                                                       : std::vector<float>{root, rms, lr};
    for (Index i = 0; i < count; ++i)
      for (Index j = 0; j < w.cols(); ++j) {
        float& weight = w(rows[i], j);
        const float x = o(i, j);
        if (how.decay == Decay::scales) {
          weight = weight * (1 - decay);
        } else if (how.decay == Decay::subtracts || weight * x >= 0) {
          weight = how.fused ? fused(-decay, weight, weight) : weight - decay * weight;
        }

        float update = x;
        for (std::size_t f = 0; f < factors.size(); ++f) {
          if (how.fused && f + 1 == factors.size()) {
            weight = fused(-factors[f], update, weight);
            break;
          }
          update = factors[f] * update;
          if (f == 0 && bf16 && how.round_scaled) update = nearest_bf16(update);
          if (f + 1 == factors.size()) weight = weight - update;
        }
      }
  }
}

void SerialMuon::step(const std::vector<std::vector<Matrix>>& gradients) {
  require_gradients(parameters_, gradients);
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    matrix_step(parameters_[p].matrix, momentum_[p].matrix, summed_gradient(gradients, p), parameters_[p].name,
                settings_.second_moment.used ? &second_moment_[p] : nullptr);
  }
}

void SerialMuon::go_on_from(const MuonMemory& kept) {
  for (std::size_t p = 0; p < momentum_.size(); ++p) {
    const std::string& name = momentum_[p].name;
    if (kept.momentum.count(name) > 0) momentum_[p].matrix = kept.momentum.at(name);
    if (kept.second_moments.count(name) > 0) second_moment_[p] = kept.second_moments.at(name);
  }
}

void SerialMuon::keep_in(MuonMemory& kept) const {
  for (std::size_t p = 0; p < momentum_.size(); ++p) {
    kept.momentum[momentum_[p].name] = momentum_[p].matrix;
    if (settings_.second_moment.used) kept.second_moments[momentum_[p].name] = second_moment_[p];
  }
}

void SerialMuon::matrix_step(Matrix& w, Matrix& m, const Matrix& g, const std::string& name, Flat* v) {
  recipe_step(w, m, g, settings_, name, nullptr, v);
}

}  // namespace muonwalk
