#pragma once

#include <string>
#include <vector>

#include "src/numerics/matrix.hpp"
#include "tools/check/parameter_case.hpp"

namespace muonwalk::check {

/// A matrix that is orthogonalized on its own, as places in a parameter: its element (i, j) is element
/// rows[i] + cols[j] of the parameter, and so are those of its update, unless `out_rows` and `out_cols` say otherwise.
struct Block {
  std::vector<Index> rows, cols, out_rows = {}, out_cols = {};

  Index size() const { return static_cast<Index>(rows.size() * cols.size()); }
  /// Its element numbers of the input, or with `out` of the update, row by row.
  /// @{
  Matrix taken(const Flat& from, bool out = false) const;
  void put(const Matrix& matrix, Flat& into) const;
  /// @}
};

/// A way to cut a parameter into matrices, and what it would be called if it isn't the meant one.
struct Cutting {
  std::string kind;  ///< An id of the catalogue; empty: the meant way.
  std::string axis;  ///< As in a Finding.
  std::string how;   ///< "in 4 blocks of rows"
  std::vector<Block> blocks = {};
};

/// What a parameter is as matrices: of more than two dimensions, `count` of them, each of the last two.
struct Stack {
  Index count = 1, rows = 1, cols = 1;
  explicit Stack(const std::vector<std::int64_t>& shape);
  Index size() const { return count * rows * cols; }
};

/// The meant cutting first, then all those that a bug may have made of it; no two of the same blocks.
std::vector<Cutting> cuttings(const ParameterCase& parameter);
/// The meant cutting alone.
Cutting meant_cutting(const ParameterCase& parameter);
/// For a dimension (of rows or cols) that a mesh axis cuts: the axis and where its slices begin, with the end.
struct Slices {
  std::string axis;
  bool of_rows = true;
  std::vector<Index> bounds;
};
std::vector<Slices> slices_of(const ParameterCase& parameter);
/// Whether an axis of the mesh, by its name, shards data-parallel ranks' copies, as FSDP and ZeRO do.
bool is_data_axis(const std::string& axis);

}  // namespace muonwalk::check
