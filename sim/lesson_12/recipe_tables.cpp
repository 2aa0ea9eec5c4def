#include "sim/lesson_12/recipe_tables.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/lesson_12/distances.hpp"
#include "src/optim/serial_recipe.hpp"
#include "src/text/output_columns.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {

Matrix RecipeTrial::end(const MuonSettings& recipe) const {
  MuonSettings settings = for_tables(recipe);
  settings.precision = precision;
  Matrix w = noise(shape, seed + 1, 0), m(shape.rows, shape.cols);
  for (int step = 0; step < steps; ++step) recipe_step(w, m, noise(shape, seed, step), settings, "matrix");
  return w;
}

double RecipeTrial::relative_distance(const MuonSettings& recipe, const MuonSettings& other) const {
  const Matrix w = end(recipe);
  return distance(end(other), w) / distance(w, noise(shape, seed + 1, 0));
}

std::vector<LineEffect> line_effects(const Recipe& recipe, const RecipeTrial& trial) {
  std::vector<LineEffect> effects;
  for (const RecipeLine& line : recipe_lines()) {
    const std::size_t first = effects.size();
    const std::string mine = line.text(recipe.settings);
    for (const Recipe& other : recipes()) {
      const std::string theirs = line.text(other.settings);
      if (theirs == mine) continue;
      const auto known = std::find_if(effects.begin() + static_cast<std::ptrdiff_t>(first), effects.end(),
                                      [&](const LineEffect& effect) { return effect.theirs == theirs; });
      if (known != effects.end()) {
        known->recipes.push_back(other.name);
        continue;
      }
      MuonSettings settings = recipe.settings;
      line.take(settings, other.settings);
      effects.push_back({line.about, mine, theirs, {other.name}, trial.relative_distance(recipe.settings, settings)});
    }
  }
  return effects;
}

std::string line_table(const std::string& name, std::uint64_t seed) {
  RecipeTrial trial;
  trial.seed = seed;
  const Recipe recipe{name, "", with_recipe(name, {})};
  const std::vector<LineEffect> effects = line_effects(recipe, trial);
  std::vector<std::vector<std::string>> rows = {
      {"line", "in " + recipe.name, "in its place", "as in", "moves weights by"}};
  std::string about;
  for (const LineEffect& effect : effects) {
    const bool again = effect.about == about;
    about = effect.about;
    const bool all_others = effect.recipes.size() + 1 == recipes().size();
    const std::string as_in = all_others ? "all others" : fmt::format("{}", fmt::join(effect.recipes, " "));
    rows.push_back(
        {again ? "" : about, again ? "" : effect.mine, effect.theirs, as_in, relative_text(effect.distance)});
  }
  std::vector<std::string> lines = table_lines(rows, 4);
  std::vector<std::string> whole;
  for (const Recipe& other : recipes())
    if (other.name != recipe.name)
      whole.push_back(other.name + " " + relative_text(trial.relative_distance(recipe.settings, other.settings)));
  append(lines, wrap_items("all lines of ", whole, output_columns() - 8));
  return labelled("lines", lines);
}

std::string recipe_distance_table(std::uint64_t seed) {
  RecipeTrial trial;
  trial.seed = seed;
  std::vector<std::vector<std::string>> rows = {{"distance from"}};
  for (const Recipe& to : recipes()) rows[0].push_back(to.name);
  for (const Recipe& from : recipes()) {
    rows.push_back({from.name});
    for (const Recipe& to : recipes())
      rows.back().push_back(from.name == to.name ? "·"
                                                 : relative_text(trial.relative_distance(from.settings, to.settings)));
  }
  return labelled("apart", table_lines(rows, 1));
}

}  // namespace muonwalk::sim
