#include "src/optim/serial_muon.hpp"

#include <utility>

namespace muonwalk {
namespace {

float nearest(float value) {
  round_to_bf16(&value, 1);
  return value;
}

}  // namespace

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

void recipe_step(Matrix& w, Matrix& m, const Matrix& g, const MuonSettings& settings, const std::string& name,
                 const Orthogonalize& orthogonalize) {
  const bool bf16 = settings.newton_schulz.precision == Precision::bf16;
  const float lr = settings.lr, mu = settings.momentum, decay = settings.lr * settings.weight_decay;

  // Momentum: a sum of gradients, or a mean of them. Between two numbers, torch.lerp goes from the nearer one.
  const auto towards = [](float from, float to, float weight) {
    return weight < 0.5f ? from + weight * (to - from) : to - (to - from) * (1 - weight);
  };
  Matrix u(w.rows(), w.cols());
  for (Index i = 0; i < w.size(); ++i) {
    float& mi = m.data()[i];
    const float gi = g.data()[i];
    if (settings.arithmetic.lerp) {
      mi = towards(mi, gi, 1 - mu);
      u.data()[i] = settings.nesterov ? towards(gi, mi, mu) : mi;
    } else {
      mi = mu * mi + gi;
      u.data()[i] = settings.nesterov ? gi + mu * mi : mi;
    }
    if (bf16 && settings.newton_schulz.normalization.round_first) u.data()[i] = nearest(u.data()[i]);
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

    // The scale is that of the piece, as if it were a parameter of its own.
    const float rms = settings.arithmetic.scale == Scale::matched_rms ? settings.rms : 1.0f;
    const float root = shape_scale({count, w.cols()}, settings.arithmetic.scale);
    for (Index i = 0; i < count; ++i)
      for (Index j = 0; j < w.cols(); ++j) {
        float update = o(i, j);
        const auto times = [&](float factor) { update = factor * update; };
        if (settings.arithmetic.scaling == Scaling::once) times(lr * rms * root);
        if (settings.arithmetic.scaling == Scaling::twice) times(rms * root);
        if (settings.arithmetic.scaling == Scaling::thrice) times(root);
        if (bf16 && settings.arithmetic.round_scaled) update = nearest(update);
        if (settings.arithmetic.scaling == Scaling::thrice) times(rms);
        if (settings.arithmetic.scaling != Scaling::once) times(lr);

        float& weight = w(rows[i], j);
        weight = settings.arithmetic.decay_subtracts ? weight - decay * weight : weight * (1 - decay);
        weight = weight - update;
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
