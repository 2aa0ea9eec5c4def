#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/optim/muon_settings.hpp"

namespace muonwalk::sim {

/// How far a fused matrix's update is from the one that was meant, relative to that one.
struct SplitError {
  std::string what;  ///< the gradient, and how it was split
  int calls = 0;     ///< of Newton–Schulz
  double all = 0;    ///< ‖U' − U‖ / ‖U‖ over the whole matrix
  double q = 0;      ///< over the rows of q alone
  double k = 0;      ///< over those of k
  double v = 0;      ///< over those of v
};

/// The scaled update of an attention's fused matrix for the momentum `u`, piece by piece as `split` says: each piece is
/// orthogonalized by itself and multiplied by 0.2 · √max of its own shape.
Matrix split_update(const Matrix& u, const AttentionRows& attention, QkvSplit split);

/// The update with `split` beside the one with QkvSplit::three, for random momentum whose rows of k and v are
/// multiplied by `size_of_kv`.
SplitError split_error(const AttentionRows& attention, Index cols, QkvSplit split, float size_of_kv,
                       std::uint64_t seed);

/// One call in place of three, for gradients of k and v that are as large as those of q, a tenth, and ten times as
/// large; and a call for each head. Below them, what was published of a real model.
std::string split_table(const AttentionRows& attention, Index cols, std::uint64_t seed);

/// Which heads these rows of the matrix are of: "q head 0, q head 1, half of q head 2" where a head is cut in two, else
/// "3 of 4 rows of q head 2".
std::string heads_text(const AttentionRows& attention, Range rows);

}  // namespace muonwalk::sim
