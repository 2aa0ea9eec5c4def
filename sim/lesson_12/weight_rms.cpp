#include "sim/lesson_12/weight_rms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "sim/lesson_12/distances.hpp"
#include "src/optim/adamw.hpp"
#include "src/optim/serial_recipe.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr Shape kTrained{32, 32}, kGains{1, 256};

// Takes `step` as often as the last of kRmsSteps says, and the root mean square of `weights` after each of them.
std::vector<double> follow(const Matrix& weights, const std::function<void(int step)>& step) {
  std::vector<double> rms;
  const int* next = std::begin(kRmsSteps);
  for (int taken = 0;; ++taken) {
    if (taken == *next) {
      rms.push_back(rms_of(weights));
      if (++next == std::end(kRmsSteps)) return rms;
    }
    step(taken);
  }
}

WeightRms of_matrix(const MuonSettings& muon, std::uint64_t seed) {
  Matrix w = noise(kTrained, seed + 1, 0), m(kTrained.rows, kTrained.cols);
  return {"matrix, by Muon", muon.weight_decay > 0,
          follow(w, [&](int step) { recipe_step(w, m, noise(kTrained, seed, step), for_tables(muon), "matrix"); })};
}

WeightRms of_gains(const AdamWSettings& settings, std::uint64_t seed) {
  const Index count = kGains.size();
  Matrix gains(kGains.rows, kGains.cols);
  std::fill(gains.flat().begin(), gains.flat().end(), 1.0f);
  Flat first(static_cast<std::size_t>(count)), second(first.size());
  return {"gains, by AdamW", settings.weight_decay > 0, follow(gains, [&](int step) {
            const Matrix gradient = noise(kGains, seed, step);
            adamw(gains.data(), gradient.data(), first.data(), second.data(), count, step + 1, settings);
          })};
}

}  // namespace

std::vector<WeightRms> weight_rms(const MuonSettings& muon, std::uint64_t seed) {
  MuonSettings plain_muon = muon;
  plain_muon.weight_decay = 0;
  AdamWSettings adamw;
  adamw.lr = muon.lr;
  adamw.weight_decay = muon.weight_decay;
  AdamWSettings plain_adamw = adamw;
  plain_adamw.weight_decay = 0;
  return {of_matrix(muon, seed), of_matrix(plain_muon, seed), of_gains(adamw, seed), of_gains(plain_adamw, seed)};
}

std::string weight_rms_table(const std::vector<WeightRms>& all) {
  std::vector<std::vector<std::string>> rows = {{"rms of weights, by steps"}};
  for (const int steps : kRmsSteps) rows[0].push_back(std::to_string(steps));
  for (const WeightRms& each : all) {
    rows.push_back({each.name + (each.decays ? ", decayed" : ", not decayed")});
    for (const double rms : each.rms) rows.back().push_back(fmt::format("{:.2f}", rms));
  }
  return labelled("decay", table_lines(rows, 1));
}

}  // namespace muonwalk::sim
