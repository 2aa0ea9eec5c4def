#pragma once

#include "src/optim/recipes.hpp"
#include "tools/check/cuttings.hpp"
#include "tools/check/spectrum.hpp"

namespace muonwalk::check {

/// A way to orthogonalize that a published class has: its Newton–Schulz with its own order of roundings, and what it
/// does with the result.
struct Orthogonalizer {
  const Recipe* recipe = nullptr;  ///< The first that has it.
  NewtonSchulzSettings settings;
  bool lines_scaled = false;  ///< Its rows (or, longer_side, what there is more of) are divided by a second moment.
  bool longer_side = false;
};

/// Those of all recipes, in bf16 and in float32, each once. `steps`, where given, is how many they take where their
/// coefficients reach so far.
std::vector<Orthogonalizer> orthogonalizers(std::optional<int> steps);

/// What becomes of an input that is laid out like the parameter. With `as_it_is` nothing is divided by a norm. Throws
/// UsageError where the input isn't finite.
Flat orthogonalized(const Flat& input, const Cutting& cutting, const NewtonSchulzSettings& settings,
                    bool as_it_is = false);

/// One function of singular values, as Newton–Schulz makes it in exact arithmetic.
struct Polynomials {
  std::string coefficients;  ///< The set, or what was done to it.
  bool known = true;         ///< Whether a class has it.
  int steps = 5;
  std::vector<Quintic> quintics;
  double cushion = 1;
  double operator()(double value) const;
};
/// Known sets with 0 to 12 steps, the default ones first, and sets in another order.
const std::vector<Polynomials>& polynomials();

}  // namespace muonwalk::check
