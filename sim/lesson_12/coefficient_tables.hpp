#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/optim/recipes.hpp"

namespace muonwalk::sim {

/// The Frobenius norm of what Newton–Schulz makes of a random matrix that has been brought to `input_norm`.
double output_norm(Shape shape, double input_norm, const Normalization& normalization, int steps, std::uint64_t seed);

/// Whether the result depends on how large the input was: a line for every way in which recipes divide by the norm,
/// with the coefficients "simple" and five steps, and one with six steps for the first; a column for each norm from 1
/// to 1e-10.
std::string norm_table(std::uint64_t seed);

/// What a set of coefficients makes of a singular value.
double image_of(double sigma, const CoefficientSet& set);

/// A line for every set: its steps, what it makes of singular values from 0.001 to 1, and the root mean square of an
/// update of 64 × 64 with the scale "matched".
std::string coefficient_table(std::uint64_t seed);

}  // namespace muonwalk::sim
