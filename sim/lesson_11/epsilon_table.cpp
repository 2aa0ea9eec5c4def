#include "sim/lesson_11/epsilon_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/numerics/philox.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr Index kWeights = 64;

double largest_difference(const Flat& a, const Flat& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return most;
}

}  // namespace

std::vector<double> forms_apart(const AdamWSettings& settings, float size, const std::vector<int>& steps,
                                std::uint64_t seed) {
  AdamWSettings forms[] = {settings, settings};
  forms[0].epsilon_stands = Epsilon::on_uncorrected_root;
  forms[1].epsilon_stands = Epsilon::outside_corrected_root;
  AdamWState states[] = {initial_adamw_state(Flat(kWeights)), initial_adamw_state(Flat(kWeights))};
  std::vector<double> apart;
  int step = 0;
  for (const int last : steps) {
    while (step < last) {
      Flat gradient = random_matrix({seed, static_cast<std::uint64_t>(++step)}, 1, kWeights).flat();
      for (float& each : gradient) each *= size;
      for (int form = 0; form < 2; ++form) adamw(states[form], gradient, step, forms[form]);
    }
    apart.push_back(largest_difference(states[0].weights, states[1].weights) / static_cast<double>(settings.lr));
  }
  return apart;
}

std::string epsilon_table(const AdamWSettings& settings, const std::vector<float>& sizes, const std::vector<int>& steps,
                          std::uint64_t seed) {
  std::vector<std::vector<std::string>> rows = {{"ε       gradients of about, and how far apart after"}};
  for (const int step : steps) rows[0].push_back(count_text(step, "step"));
  for (const float size : sizes) {
    rows.push_back({fmt::format("        {:g}", size)});
    for (const double apart : forms_apart(settings, size, steps, seed))
      rows.back().push_back(fmt::format("{:.6f}", apart));
  }
  rows.push_back({"        what ε counts, times its size"});
  for (const int step : steps) {
    double power = 1;
    for (int i = 0; i < step; ++i) power *= static_cast<double>(settings.beta2);
    rows.back().push_back(fmt::format("{:.2f}", 1 / std::sqrt(1 - power)));
  }
  return joined_table(rows, 1);
}

}  // namespace muonwalk::sim
