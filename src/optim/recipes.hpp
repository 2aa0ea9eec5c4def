#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/numerics/coefficients.hpp"
#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// A Muon that is in use: the choices of one published class, as data. The serial reference (recipe_step) and the
/// distributed step read the same settings, and have one loop each. tests/golden/recipes/README.md says what of this
/// was measured against the class itself.
struct Recipe {
  std::string name;          ///< The word that --recipe takes.
  std::string whose;         ///< The class: "torch.optim.Muon".
  std::string source;        ///< Which version of which file, where its order of operations was read.
  MuonSettings settings;     ///< Its choices, with its own defaults.
  std::string coefficients;  ///< The CoefficientSet that it takes.

  // What a caller of the class can choose besides lr, momentum and weight decay.
  bool has_nesterov = false;  ///< Nesterov's momentum, on or off.
  bool has_steps = false;     ///< How many steps of Newton–Schulz.
  bool has_cautious = false;  ///< Cautious weight decay.
  /// What it calls its ways to scale an update, with the first one as its default. Empty where it has but one.
  std::vector<std::pair<std::string, Scale>> scales = {};
};

/// The recipes. The first five are those that differ most: moonshot, kellerjordan, torch, emerging, dion.
const std::vector<Recipe>& recipes();
constexpr std::size_t kMainRecipes = 5;

/// The recipe of this name. Throws UsageError where there is none.
const Recipe& recipe_named(const std::string& name);

/// What a caller of a class asks for. What is not there is the class's default.
struct RecipeArguments {
  std::optional<double> lr, momentum, weight_decay, beta2;
  std::optional<int> steps;
  std::optional<bool> nesterov;
  bool cautious = false;
  std::string scale = {};  ///< One of the words of Recipe::scales; empty: the default.
};

/// The settings of a recipe, called like that. Throws UsageError, a sentence with the option's name, for an argument
/// that the class doesn't have, and for steps that its coefficients don't reach.
MuonSettings called(const Recipe& recipe, const RecipeArguments& asked);

/// The settings of the recipe `name` with the learning rate, momentum, decay, rms, precision, products, threads, gather
/// and pieces of `knobs`: for a comparison in which these are the same for all. Throws UsageError where there is none
/// of this name.
MuonSettings with_recipe(const std::string& name, const MuonSettings& knobs);

/// One of the lines in which recipes differ: what it is about, in the words of one of them, and how to take it alone.
struct RecipeLine {
  std::string about;                                      ///< "momentum"
  std::string (*text)(const MuonSettings&);               ///< "m ← μ m + g"
  void (*take)(MuonSettings& mine, const MuonSettings&);  ///< takes this line of another's settings
};

/// All of them, in the order of a step.
const std::vector<RecipeLine>& recipe_lines();

}  // namespace muonwalk
