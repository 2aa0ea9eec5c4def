#include "sim/lesson_10/toy_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "src/numerics/philox.hpp"

namespace muonwalk::sim {
namespace {

// Tensors that no RandomTraining uses.
constexpr std::uint64_t kFirstTarget = std::uint64_t{1} << 61, kFirstBias = std::uint64_t{1} << 62;
constexpr float kNoise = 0.25f;

}  // namespace

MuonSettings toy_settings(const Seat& seat) {
  MuonSettings settings = muon_settings(seat.precision, seat.threads, seat.products);
  settings.lr = 0.5f;
  return settings;
}

ToyTraining::ToyTraining(std::vector<Parameter> parameters, int steps, std::uint64_t seed)
    : noise_(std::move(parameters), steps, seed), seed_(seed) {}

Matrix ToyTraining::target(const NamedMatrix& held) const {
  const int p = parameter_number(held.name);
  const Index cols = parameters()[static_cast<std::size_t>(p)].shape.cols;
  Matrix part(held.matrix.rows(), held.matrix.cols());
  for (Index i = 0; i < part.rows(); ++i)
    random_values({seed_, kFirstTarget + static_cast<std::uint64_t>(p)},
                  static_cast<std::uint64_t>((held.first_row + i) * cols + held.first_col), part.cols(),
                  part.data() + i * part.cols());
  return part;
}

std::vector<Matrix> ToyTraining::gradients(int step, int leaf, const std::vector<NamedMatrix>& held) const {
  std::vector<Matrix> parts = noise_.gradients(step, leaf, held);
  for (std::size_t i = 0; i < held.size(); ++i) {
    const Matrix goal = target(held[i]);
    for (Index at = 0; at < goal.size(); ++at) {
      const float distance = held[i].matrix.data()[at] - goal.data()[at];
      const float noise = kNoise * parts[i].data()[at];
      parts[i].data()[at] = distance + noise;
    }
  }
  return parts;
}

AdamWState ToyTraining::first_bias() const {
  return initial_adamw_state(random_matrix({seed_, kFirstBias}, 1, kToyBias).flat());
}

Flat ToyTraining::bias_gradient(int step, int dp_rank) const {
  return random_matrix({seed_, kFirstBias + 1 + static_cast<std::uint64_t>(step * kMostRanks + dp_rank)}, 1, kToyBias)
      .flat();
}

NamedMatrix ToyTraining::named_bias(const AdamWState& bias) const {
  return {"bias", Matrix(1, kToyBias, bias.weights), 0, 0};
}

double ToyTraining::loss(const Grid& grid, const std::vector<std::vector<NamedMatrix>>& held) const {
  double sum = 0;
  Index elements = 0;
  std::size_t p = 0;
  for (const Matrix& matrix : join_held_slices(parameters(), grid, held)) {
    const Matrix goal = target({parameters()[p++].name, matrix});
    for (Index at = 0; at < goal.size(); ++at) {
      const double distance = static_cast<double>(matrix.data()[at]) - static_cast<double>(goal.data()[at]);
      sum += distance * distance;
    }
    elements += goal.size();
  }
  return elements == 0 ? 0 : sum / static_cast<double>(elements);
}

std::string loss_text(const std::vector<double>& losses) {
  if (losses.empty()) return "";
  std::string text = "loss ";
  for (std::size_t i = 0; i < losses.size(); ++i) text += fmt::format("{}{:.2f}", i > 0 ? " → " : "", losses[i]);
  const bool falls =
      losses.size() > 1 && std::adjacent_find(losses.begin(), losses.end(), std::less_equal<double>()) == losses.end();
  return text + (falls ? ": it falls in every step" : "");
}

}  // namespace muonwalk::sim
