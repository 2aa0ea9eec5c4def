#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/optim/adamw.hpp"

namespace muonwalk::sim {

/// How far the two forms of AdamW (Epsilon) are apart after each of the `steps` (ascending, at least 1), where both
/// begin with the same 64 weights of zero and are fed the same random gradients, times `size`: the largest difference
/// of two weights, in learning rates. `settings` are those of both, but for where ε stands.
std::vector<double> forms_apart(const AdamWSettings& settings, float size, const std::vector<int>& steps,
                                std::uint64_t seed);

/// That as a table: a line for each size of gradients, a column for each number of steps, and a last line that says how
/// many times its size ε counts in that step where it stands on the uncorrected root: 1 / √(1 − β₂ᵗ).
std::string epsilon_table(const AdamWSettings& settings, const std::vector<float>& sizes, const std::vector<int>& steps,
                          std::uint64_t seed);

}  // namespace muonwalk::sim
