#include "sim/lesson_12/update_rms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/lesson_12/distances.hpp"
#include "src/optim/adamw.hpp"
#include "src/optim/steps.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr Shape kTableShapes[] = {{64, 64}, {16, 64}, {64, 16}, {64, 256}, {256, 64}};
constexpr int kTableSteps = 50;

}  // namespace

double UpdateRms::scaled(Scale scale) const {
  const double factor = scale == Scale::matched_rms ? static_cast<double>(MuonSettings().rms) : 1;
  return factor * static_cast<double>(shape_scale(shape, scale)) * orthogonal;
}

UpdateRms update_rms(Shape shape, int steps, std::uint64_t seed) {
  AdamWSettings adamw_settings;
  adamw_settings.lr = 1;
  adamw_settings.weight_decay = 0;
  AdamWState state = initial_adamw_state(Flat(static_cast<std::size_t>(shape.size())));

  const MuonSettings muon = for_tables({});
  Matrix buffer(shape.rows, shape.cols), update(shape.rows, shape.cols);
  for (int step = 0; step < steps; ++step) {
    const Matrix gradient = noise(shape, seed, step);
    std::fill(state.weights.begin(), state.weights.end(), 0.0f);  // so that they are the last update, with its sign
    adamw(state, gradient.flat(), step + 1, adamw_settings);
    momentum(gradient.data(), buffer.data(), gradient.size(), muon, update.data());
  }
  return {shape, rms_of(Matrix(shape.rows, shape.cols, state.weights)), rms_of(orthogonalize(update, muon, "table"))};
}

std::vector<UpdateRms> update_rms_of_shapes(std::uint64_t seed) {
  std::vector<UpdateRms> all;
  for (const Shape shape : kTableShapes) all.push_back(update_rms(shape, kTableSteps, seed));
  return all;
}

double adamw_rms_on_noise(double beta1) { return std::sqrt((1 - beta1) / (1 + beta1)); }

std::string update_rms_table(const std::vector<UpdateRms>& all) {
  std::vector<std::vector<std::string>> rows = {{"of an update, for lr 1", "AdamW"}};
  for (const Scale scale : kScales) rows[0].push_back(scale_name(scale));
  for (const UpdateRms& each : all) {
    rows.push_back({shape_text(each.shape.rows, each.shape.cols), fmt::format("{:.3f}", each.adamw)});
    for (const Scale scale : kScales) rows.back().push_back(fmt::format("{:.3f}", each.scaled(scale)));
  }
  rows.push_back(
      {"formula for noise", fmt::format("{:.3f}", adamw_rms_on_noise(static_cast<double>(AdamWSettings().beta1)))});
  return labelled("rms", table_lines(rows, 1));
}

}  // namespace muonwalk::sim
