#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/numerics/newton_schulz_settings.hpp"

namespace muonwalk {

/// What follows the last polynomial of a set when more steps are asked for.
enum class AfterLast {
  repeats,       ///< the last one, again and again
  begins_again,  ///< the first one
  nothing,       ///< There are no more steps.
  no_fewer       ///< There are no more and no fewer.
};
/// "repeats the last", "begins again", "takes no more", "takes these alone".
const char* after_last_text(AfterLast after);

/// Coefficients of Newton–Schulz, a polynomial for each step.
struct CoefficientSet {
  std::string name;               ///< The word that --coefficients takes.
  std::string whose;              ///< Who published them, and whose code they were read in.
  std::vector<Quintic> quintics;  ///< One for each step.
  AfterLast after;                ///< What the class that has them does then.

  /// Those of this many steps. Throws UsageError where the set does not reach so far.
  std::vector<Quintic> of_steps(int steps) const;
};

/// The sets, by the names that Emerging-Optimizers gives them (simple, quintic, polar_express, cans, aol, deepseekv4,
/// cubic5), polar_dion, which dion and nanochat share, and polar_gram.
const std::vector<CoefficientSet>& coefficient_sets();

/// Takes the set `name`, with this many steps, or with as many as it has polynomials. Throws UsageError where there is
/// none of this name, and as of_steps does.
void take_coefficients(NewtonSchulzSettings& settings, const std::string& name, std::optional<int> steps = {});

/// The name of the set that the settings take their polynomials from.
std::string coefficients_name(const NewtonSchulzSettings& settings);

}  // namespace muonwalk
