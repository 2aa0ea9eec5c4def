#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/optim/recipes.hpp"

namespace muonwalk::sim {

/// On what recipes are compared: a matrix that is trained for some steps on random gradients without a mean (noise).
struct RecipeTrial {
  Shape shape{24, 16};                    ///< tall, so that it matters how tall matrices are treated
  int steps = 10;                         ///< optimizer steps
  Precision precision = Precision::bf16;  ///< bf16, in which most of them run
  std::uint64_t seed = 1;                 ///< of weights and gradients

  /// The weights that a recipe ends with.
  Matrix end(const MuonSettings& recipe) const;
  /// How far `other` ends from `recipe`, relative to the way that `recipe` has come: ‖w' − w‖ / ‖w − w₀‖.
  double relative_distance(const MuonSettings& recipe, const MuonSettings& other) const;
};

/// What comes of a recipe when it takes one line of others.
struct LineEffect {
  std::string about;                 ///< "momentum", as RecipeLine has it
  std::string mine;                  ///< the line as the recipe has it
  std::string theirs;                ///< the line in its place
  std::vector<std::string> recipes;  ///< whose it is
  double distance = 0;               ///< RecipeTrial::relative_distance
};

/// For each line in which another recipe differs from `recipe`: what it does to `recipe` when it is taken alone. In the
/// order of a step; a line that several recipes share comes once.
std::vector<LineEffect> line_effects(const Recipe& recipe, const RecipeTrial& trial);

/// Those of the recipe `name` as a table, and below it a line with the distance of each whole recipe.
std::string line_table(const std::string& name, std::uint64_t seed);

/// Each recipe's distance from each other: a line for the one that the distance is relative to.
std::string recipe_distance_table(std::uint64_t seed);

}  // namespace muonwalk::sim
