#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// Sines and cosines of rotary positions (Su et al., "RoFormer", 2021): the pair of channels i and i + head_width / 2
/// of a head is turned by position · base^(−2 i / head_width).
struct RotaryAngles {
  Matrix cosine;  ///< tokens × head_width / 2
  Matrix sine;    ///< tokens × head_width / 2
};

/// Those of positions 0 … tokens − 1.
RotaryAngles rotary_angles(Index tokens, Index head_width, float base);

/// Turns every head of every row: x is rows × (heads · head_width), and row r is at position r mod tokens.
void rotate(Matrix& x, const RotaryAngles& angles);

/// Backward: the same by the negative angles. A turn keeps lengths, so its transpose is the turn back.
void rotate_back(Matrix& x, const RotaryAngles& angles);

}  // namespace muonwalk
