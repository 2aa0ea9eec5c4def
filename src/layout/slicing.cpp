#include "src/layout/slicing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace muonwalk {
namespace {

void require_range(Range range, Index length, const char* what) {
  if (range.begin < 0 || range.end < range.begin || range.end > length)
    throw std::invalid_argument(
        fmt::format("{} {}..{} (end excluded) do not lie in 0..{}", what, range.begin, range.end, length));
}

// The range of an equal cut of `length` into tp that belongs to tp_rank.
Range equal_run(Index length, int tp, int tp_rank) {
  if (length % tp != 0)
    throw std::invalid_argument(fmt::format("{} TP ranks do not divide a length of {}", tp, length));
  return {length / tp * tp_rank, length / tp * (tp_rank + 1)};
}

}  // namespace

Matrix row_slice(const Matrix& x, Range rows) {
  require_range(rows, x.rows(), "rows");
  Matrix slice(rows.size(), x.cols());
  // Whole rows lie one after the other, so a slice of rows is one contiguous range of memory.
  std::copy_n(x.data() + rows.begin * x.cols(), slice.size(), slice.data());
  return slice;
}

Matrix column_slice(const Matrix& x, Range columns) {
  require_range(columns, x.cols(), "columns");
  Matrix slice(x.rows(), columns.size());
  // Columns are a short range of every row, which have to be picked up one by one.
  for (Index row = 0; row < x.rows(); ++row) {
    std::copy_n(x.data() + row * x.cols() + columns.begin, columns.size(), slice.data() + row * columns.size());
  }
  return slice;
}

Matrix tp_slice(const Matrix& x, SplitDim dim, int tp, int tp_rank) {
  if (tp < 1 || tp_rank < 0 || tp_rank >= tp)
    throw std::invalid_argument(fmt::format("TP rank {} of {} does not exist", tp_rank, tp));
  switch (dim) {
    case SplitDim::rows:
      return row_slice(x, equal_run(x.rows(), tp, tp_rank));
    case SplitDim::columns:
      return column_slice(x, equal_run(x.cols(), tp, tp_rank));
    case SplitDim::none:
      break;
  }
  return x;
}

Matrix join_slices(const Flat& slices, Shape slice_shape, SplitDim dim, int tp) {
  if (tp < 1 || (dim == SplitDim::none && tp != 1))
    throw std::invalid_argument(fmt::format("can't join {} slices along {}", tp, split_name(dim)));
  if (slice_shape.rows < 0 || slice_shape.cols < 0 || static_cast<Index>(slices.size()) != slice_shape.size() * tp) {
    throw std::invalid_argument(fmt::format("{} elements are not {} slices of {}", slices.size(), tp,
                                            shape_text(slice_shape.rows, slice_shape.cols)));
  }
  if (dim != SplitDim::columns) return Matrix(slice_shape.rows * tp, slice_shape.cols, slices);

  Matrix whole(slice_shape.rows, slice_shape.cols * tp);
  float* out = whole.data();
  for (Index row = 0; row < slice_shape.rows; ++row) {
    for (int rank = 0; rank < tp; ++rank) {
      // Row `row` of this rank's slice, which lies rank · slice_shape.size() elements into the gathered ones.
      const float* run = slices.data() + rank * slice_shape.size() + row * slice_shape.cols;
      out = std::copy_n(run, slice_shape.cols, out);
    }
  }
  return whole;
}

Matrix join_slices(const std::vector<const Matrix*>& slices, SplitDim dim) {
  if (dim == SplitDim::none) return *slices.at(0);
  Flat one_after_the_other;
  for (const Matrix* slice : slices)
    one_after_the_other.insert(one_after_the_other.end(), slice->flat().begin(), slice->flat().end());
  return join_slices(one_after_the_other, {slices.at(0)->rows(), slices.at(0)->cols()}, dim,
                     static_cast<int>(slices.size()));
}

}  // namespace muonwalk
