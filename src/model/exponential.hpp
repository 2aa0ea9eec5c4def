#pragma once

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// eˣ, with the same bits on every processor, which the C library does not promise. x = n·ln 2 + r with |r| ≤ ½ ln 2;
/// eʳ is its Taylor polynomial of degree 7, whose remainder is below a tenth of the last place. 0 where the result
/// would be below the smallest normal number, ∞ above the largest, a NaN for a NaN; within 2 ulp elsewhere.
float exponential(float x);

/// The same for each of `count` numbers, in place.
void exponentials(float* values, Index count);

}  // namespace muonwalk
