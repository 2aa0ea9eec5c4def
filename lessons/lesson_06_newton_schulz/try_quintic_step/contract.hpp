// # One step of Newton–Schulz
//
// Given X and the three coefficients, return a X + B X, where A = X Xᵀ and B = b A + c A A.
//
//     x          m × n, with m ≤ n
//     a, b, c    the coefficients of the quintic
//     returns    m × n
//
// It is called five times in a row. As in the lesson, the result has to be near the formula, so any order of addition
// will do. Nothing is sent. Besides x, hold no more than the result, A and B, which is m · n + 2 · m · m elements.
#pragma once

#include "src/numerics/products.hpp"

namespace muonwalk {

using QuinticStep = Matrix(const Matrix& x, float a, float b, float c);

}  // namespace muonwalk
