#pragma once

#include <string>
#include <vector>

#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// A Muon that is in use: the choices of one implementation, as data. The serial reference (recipe_step) and the
/// distributed step read the same settings, and have one loop each.
struct Recipe {
  std::string name;       ///< The word that --recipe takes.
  std::string whose;      ///< The file in which its order of operations was read.
  MuonSettings settings;  ///< Its choices, with the usual learning rate, momentum and decay.
};

/// The recipes: moonshot, kellerjordan, torch, emerging, dion.
const std::vector<Recipe>& recipes();

/// The settings of the recipe `name` with the learning rate, momentum, decay, rms, precision, products, threads, gather
/// and pieces of `knobs`: what is the same for all. Throws UsageError where there is none of this name.
MuonSettings with_recipe(const std::string& name, const MuonSettings& knobs);

/// One of the lines in which recipes differ: what it is about, in the words of one of them, and how to take it alone.
struct RecipeLine {
  std::string about;                                      ///< "momentum"
  std::string (*text)(const MuonSettings&);               ///< "m ← μ m + g"
  void (*take)(MuonSettings& mine, const MuonSettings&);  ///< takes this line of another's settings
};

/// All of them, in the order of a step.
const std::vector<RecipeLine>& recipe_lines();

/// Coefficients of Newton–Schulz, a polynomial for each step.
struct CoefficientSet {
  std::string name;               ///< The word that --coefficients takes.
  std::string whose;              ///< Who published them.
  std::vector<Quintic> quintics;  ///< one for each step; further steps repeat the last
};

/// The sets: simple, quintic, polar_express, aol, deepseekv4, by the names that Emerging-Optimizers gives them.
const std::vector<CoefficientSet>& coefficient_sets();

/// Takes the set `name`, with as many steps as it has polynomials. Throws UsageError where there is none of this name.
void take_coefficients(MuonSettings& settings, const std::string& name);

}  // namespace muonwalk
