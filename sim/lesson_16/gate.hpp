#pragma once

#include "src/comm/ledger.hpp"
#include "src/layout/grid.hpp"
#include "src/layout/slicing.hpp"

namespace muonwalk::sim {

/// The matrix that lesson 16 follows by hand: gate, 6 × 4, which TP cuts by rows.
const Parameter& gate();

/// The gradient of it that DP rank `dp_rank` computes, whole: random numbers.
Matrix gate_gradient(std::uint64_t seed, int dp_rank);

/// The sum of those of `dp` ranks, added as ranks add them.
Matrix summed_gate(std::uint64_t seed, int dp);

/// One step of Newton–Schulz on a piece of a wide matrix whose columns lie in several pieces: X ← a X + B X with
/// B = b A + c (A A), where `gram` is A = X Xᵀ of the whole. `piece` is m × any, `gram` m × m.
Matrix next_piece(const Matrix& piece, const Matrix& gram);

/// The orthogonal matrix of a sum of gradients, by a Newton–Schulz whose Gram matrices are added from `tp` pieces, in
/// slices: what the ranks of a TP group come to that add theirs.
std::vector<Matrix> gram_in_pieces(const Matrix& sum, int tp);

/// The elements of a TP slice of gate that each DP rank holds, where rows are dealt out as FSDP does: ⌈rows / dp⌉ for
/// each rank, as long as there are some. The last ranks may get fewer, or none.
std::vector<Index> parts_of_slice(const Grid& grid);
/// The same as a range of rows, for one of them.
Range rows_of_rank(const Grid& grid, int dp_rank);

/// Multiplies all elements by a factor.
void scale(Matrix& matrix, float factor);

/// What is sent for gate by the rank at `place`, with `worker` as the worker and the owner in dp: to the worker and
/// back, to the owner, and its Gram matrices.
Ledger gate_ledger(const Grid& grid, const Place& place, int worker);

}  // namespace muonwalk::sim
