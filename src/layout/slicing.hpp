#pragma once

#include <vector>

#include "src/layout/parameter.hpp"
#include "src/numerics/bfloat16.hpp"

namespace muonwalk {

/// A copy of the rows `rows` of x: rows.size() × cols.
Matrix row_slice(const Matrix& x, Range rows);
/// A copy of the columns `columns` of x: rows × columns.size().
Matrix column_slice(const Matrix& x, Range columns);

/// TP slice `tp_rank` of `tp` of x along `dim`: an equal range of rows or columns, or all of x for SplitDim::none.
/// Throws std::invalid_argument when tp does not divide the dimension.
Matrix tp_slice(const Matrix& x, SplitDim dim, int tp, int tp_rank);

/// The opposite of tp_slice: `slices` holds tp slices of `slice_shape`, one after the other in rank order as an
/// all-gather leaves them (tp · slice_shape.size() elements). Slices of rows already lie as the whole matrix does;
/// slices of columns have to be laid side by side, row by row. For SplitDim::none tp must be 1. Returns the whole
/// matrix: (tp · rows) × cols or rows × (tp · cols).
Matrix join_slices(const Flat& slices, Shape slice_shape, SplitDim dim, int tp);

/// Joins slices that are matrices of their own, in rank order. For SplitDim::none the first is the whole.
Matrix join_slices(const std::vector<const Matrix*>& slices, SplitDim dim);

}  // namespace muonwalk
