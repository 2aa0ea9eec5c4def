#include "sim/lesson_12/coefficient_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/lesson_12/distances.hpp"
#include "src/numerics/tree_sum.hpp"
#include "src/optim/steps.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

constexpr Shape kSquare{64, 64};
constexpr double kNorms[] = {1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10};
constexpr double kSigmas[] = {0.001, 0.01, 0.1, 0.5, 1};

// "divides by", among the lines in which recipes differ.
const RecipeLine& division() {
  return *std::find_if(recipe_lines().begin(), recipe_lines().end(),
                       [](const RecipeLine& line) { return line.about == "divides by"; });
}

std::vector<std::string> row_of_norms(const std::string& name, const Normalization& normalization, int steps,
                                      std::uint64_t seed) {
  std::vector<std::string> row = {name};
  for (const double norm : kNorms)
    row.push_back(fmt::format("{:.2f}", output_norm(kSquare, norm, normalization, steps, seed)));
  return row;
}

}  // namespace

double output_norm(Shape shape, double input_norm, const Normalization& normalization, int steps, std::uint64_t seed) {
  Matrix x = noise(shape, seed, 0);
  const double factor = input_norm / frobenius_norm(x);
  for (float& value : x.flat()) value = static_cast<float>(value * factor);
  MuonSettings settings = for_tables({});
  settings.normalization = normalization;
  settings.ns_steps = steps;
  return frobenius_norm(orthogonalize(x, settings, "table"));
}

std::string norm_table(std::uint64_t seed) {
  std::vector<std::vector<std::string>> rows = {{"output norm, for an input norm of"}};
  for (const double norm : kNorms) rows[0].push_back(fmt::format("{:g}", norm));
  std::vector<std::pair<std::string, std::vector<std::string>>> ways;  // as a text, with the recipes that take it
  for (const Recipe& recipe : recipes()) {
    const std::string text = division().text(recipe.settings);
    const auto known = std::find_if(ways.begin(), ways.end(), [&](const auto& way) { return way.first == text; });
    if (known != ways.end())
      known->second.push_back(recipe.name);
    else
      ways.push_back({text, {recipe.name}});
  }
  const int steps = MuonSettings().ns_steps;
  for (const auto& [text, names] : ways)
    for (const Recipe& recipe : recipes())
      if (recipe.name == names.front())
        rows.push_back(row_of_norms(fmt::format("{}: {}", text, fmt::join(names, ", ")), recipe.settings.normalization,
                                    steps, seed));
  rows.push_back(
      row_of_norms(ways.front().first + ", a sixth step", recipes().front().settings.normalization, steps + 1, seed));
  return labelled("norms", table_lines(rows, 1));
}

double image_of(double sigma, const CoefficientSet& set) {
  for (const Quintic& q : set.quintics) {
    const double square = sigma * sigma;
    sigma *= static_cast<double>(q.a) + square * (static_cast<double>(q.b) + square * static_cast<double>(q.c));
  }
  return sigma;
}

std::string coefficient_table(std::uint64_t seed) {
  std::vector<std::vector<std::string>> rows = {{"a singular value of", "steps"}};
  for (const double sigma : kSigmas) rows[0].push_back(fmt::format("{:g}", sigma));
  rows[0].emplace_back("rms of an update");
  for (const CoefficientSet& set : coefficient_sets()) {
    rows.push_back({"becomes with " + set.name, std::to_string(set.quintics.size())});
    for (const double sigma : kSigmas) rows.back().push_back(fmt::format("{:.3f}", image_of(sigma, set)));
    MuonSettings settings = for_tables({});
    settings.lr = 1;
    take_coefficients(settings, set.name);
    const Matrix o = orthogonalize(noise(kSquare, seed, 0), settings, "table");
    rows.back().push_back(fmt::format("{:.3f}", rms_of(o) * static_cast<double>(update_scale(kSquare, settings))));
  }
  return labelled("sets", table_lines(rows, 1));
}

}  // namespace muonwalk::sim
