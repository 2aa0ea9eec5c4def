#pragma once

#include <string>
#include <vector>

#include "src/numerics/matrix.hpp"

namespace muonwalk::sim {

/// A matrix that a wrong answer may turn out to be, in words that complete "It is …": "the slice of tp rank 1".
struct Look {
  std::string what;     ///< the words
  Matrix matrix;        ///< the values, row-major; the shape is not compared
  std::string of = {};  ///< Of which matrix this is said; of any, where it is empty.
};

/// Puts something behind the end of what a reader is given, by which it is recognized in an answer.
void guard_end(Flat& values);

/// What a wrong matrix looks like, as one or two sentences; empty where nothing is recognized. Bits are compared.
///
/// `slices` is the number of equal slices, along its rows or its columns, that the right matrix is made of; `looks` are
/// what an exercise knows of besides. Recognized are: one of the looks; the right values under another shape; zeros,
/// everywhere or in some rows, columns or slices; the transpose; what was read or written column by column; slices
/// joined along the other dimension, in another order or interleaved; a slice where another one belongs; everything
/// some elements too early or too late; everything so many times too large or too small; what lies behind a guarded
/// end; NaNs and infinities; and an answer that differs in its last bits alone.
std::string likeness(const Matrix& held, const Matrix& wanted, int slices = 1, const std::vector<Look>& looks = {});

}  // namespace muonwalk::sim
