#pragma once

#include <string>
#include <vector>

#include "src/numerics/matrix.hpp"
#include "tools/check/parameter_case.hpp"

namespace muonwalk::check {

/// What something is called where it isn't as it is meant, and what is seen of it.
struct Claim {
  std::string kind;  ///< An id of the catalogue; empty where it is as a known recipe does it, or no id fits.
  std::string axis;  ///< As in a Finding.
  std::string how;   ///< "in 4 blocks of rows", "μ is 0.900, and hyper says 0.95"
};

/// A matrix that is orthogonalized on its own, as places in a parameter: its element (i, j) is element
/// rows[i] + cols[j] of the parameter.
struct Block {
  std::vector<Index> rows, cols;

  /// Hands `act` the number of each element, row by row.
  template <class Act>
  void each(Act&& act) const {
    for (const Index row : rows)
      for (const Index col : cols) act(static_cast<std::size_t>(row + col));
  }
  Matrix taken(const Flat& from) const;
};

/// A way to cut a parameter into matrices; its kind is empty for the meant way.
struct Cutting : Claim {
  std::vector<Block> blocks = {};
  std::vector<Block> lands = {};   ///< Where the update of each block goes; empty: where the block lies.
  std::vector<Block> normed = {};  ///< Parts of it that were divided by norms of their own; empty: it by its norm.
};

/// What a parameter is as matrices: of more than two dimensions, `count` of them, each of the last two.
struct Stack {
  Index count = 1, rows = 1, cols = 1;
  explicit Stack(const std::vector<std::int64_t>& shape);
};

/// A mesh axis that cuts rows or columns, and how many of them each of its slices has.
struct Slices {
  std::string axis;
  bool of_rows = true;
  std::vector<std::int64_t> sizes;
};
std::vector<Slices> slices_of(const Described& parameter);

/// What ranks hold of the weights, or of the moments where these are cut otherwise, as far as it lies in one matrix;
/// each part once. Its axis is the data-parallel one where several cut it.
Cutting rank_parts(const ParameterCase& parameter, bool of_moments);

/// The meant cutting alone.
Cutting meant_cutting(const Described& parameter);
/// The meant cutting first, then all those that a bug may have made of it; no two of the same blocks.
std::vector<Cutting> cuttings(const ParameterCase& parameter);

}  // namespace muonwalk::check
