#pragma once

#include <string>

#include "src/numerics/matrix.hpp"

namespace muonwalk {

/// The dimension along which tensor parallelism cuts a matrix. The values are those of PyTorch's `dim` and of the proof
/// of concept's `tp_split_dim`.
enum class SplitDim { none = -1, rows = 0, columns = 1 };

/// "none", "rows", "columns".
const char* split_name(SplitDim dim);

struct Shape {
  Index rows = 0, cols = 0;
  Index size() const { return rows * cols; }
  friend bool operator==(Shape a, Shape b) { return a.rows == b.rows && a.cols == b.cols; }
  friend bool operator!=(Shape a, Shape b) { return !(a == b); }
};

/// One weight tensor of the model, before anything cuts it.
struct Parameter {
  std::string name;                        ///< No two parameters of a layout have the same.
  Shape shape;                             ///< The full shape, before TP.
  SplitDim tp_split_dim = SplitDim::none;  ///< With none, every TP rank holds all of it.
  int group = 0;                           ///< Every parameter group has a buffer of its own.
  int dims = 2;                            ///< 2 for a matrix; 1 for any other tensor, whose elements lie in one row.
};

/// The shape of one rank's TP slice. Throws UsageError, naming the parameter, the option and values that would work,
/// when `tp` does not divide the split dimension: `--tp 3 does not divide the 100 rows of parameter "w0"; try --tp 1,
/// 2, 4 or 5`.
Shape tp_shape(const Parameter& parameter, int tp);

/// A half-open range of elements, rows or columns: begin, begin + 1, …, end − 1.
struct Range {
  Index begin = 0, end = 0;
  /// Below 0 where end < begin.
  Index size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  friend bool operator==(Range a, Range b) { return a.begin == b.begin && a.end == b.end; }
  friend bool operator!=(Range a, Range b) { return !(a == b); }
};

/// What two ranges share; an empty range at `a`'s begin when they share nothing.
Range intersection(Range a, Range b);

/// "0–11" (inclusive, as a reader counts), or "nothing" when empty.
std::string range_text(Range range);

/// The rows or columns that TP rank `tp_rank` of `tp` holds: an equal range each. For SplitDim::none, all rows.
Range tp_range(const Parameter& parameter, int tp, int tp_rank);

}  // namespace muonwalk
