#include "src/optim/serial_recipe.hpp"

#include <utility>

namespace muonwalk {
namespace {

float nearest(float value) {
  round_to_bf16(&value, 1);
  return value;
}

}  // namespace

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

}  // namespace muonwalk
