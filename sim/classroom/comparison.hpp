#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "src/numerics/matrix.hpp"

namespace muonwalk::sim {

/// The outcome of comparing what one or more ranks hold with the reference, byte by byte (memcmp).
struct Comparison {
  long long elements = 0;          ///< compared so far
  long long different = 0;         ///< elements that differ
  std::vector<std::string> first;  ///< the first difference, in words; empty when there is none

  /// Nothing differs: no element, shape or name.
  bool equal() const { return first.empty(); }
};

/// Compares what rank `rank` holds with what it should hold and adds the outcome to `comparison`. Equal means: the same
/// names in the same order, the same shapes and the same bytes. The first difference is described with parameter, row
/// and column, both values in decimal and hex, the distance in ULP, and the rank.
void compare(const std::string& rank, const std::vector<NamedMatrix>& held, const std::vector<NamedMatrix>& expected,
             Comparison& comparison);

/// A float as differences show it: nine digits, which tell any two floats apart, and its bits in hex.
std::string float_text(float value);

/// How many float32 values lie between two values, counted along the number line (0 when they are equal, +0 and −0
/// included); −1 when one of them is a NaN.
long long ulp_distance(float a, float b);

/// Whole numbers, each with a name that a sentence can use: "rank 0, all_gather in [0, 1]: calls".
using NamedNumbers = std::map<std::string, std::int64_t>;

/// The first name at which the two differ, as a sentence with both numbers; empty when they are equal.
std::string first_difference(const NamedNumbers& read, const NamedNumbers& expected);

}  // namespace muonwalk::sim
