#pragma once

#include <string>

#include "src/numerics/matrix.hpp"

namespace muonwalk::sim {

/// What a rank does in a step, added up.
struct Counts {
  double messages = 0;  ///< that it sends, empty ones included
  double bytes = 0;     ///< that it sends, without headers
  double flops = 0;     ///< of Newton–Schulz
};

/// What that takes on some machine.
struct Machine {
  double seconds_per_message = 0;  ///< α
  double seconds_per_byte = 0;     ///< β
  double seconds_per_flop = 0;     ///< of Newton–Schulz
};

/// A laptop, whose ranks talk over Gloo: the cluster "laptop" of the cost model, measured once by
/// `muonwalk-scale measure`, at the size of product that this lesson's matrices have.
Machine laptop();

/// α · messages + β · bytes + FLOPs / rate: one after the other, nothing at the same time.
double seconds_of(const Counts& counts, const Machine& machine);

/// Counts as a matrix of one row, which ranks can hand over and a check can compare, and back. Exact up to 2^24 each.
/// @{
Matrix row_of(const Counts& counts);
Counts counts_from(const Matrix& row);
/// @}

/// "33 messages, 35,840 B, 1,413,120 FLOP".
std::string counts_text(const Counts& counts);

}  // namespace muonwalk::sim
