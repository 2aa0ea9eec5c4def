#pragma once

#include <map>
#include <string>

#include "src/layout/buffer.hpp"
#include "src/optim/muon_settings.hpp"

namespace muonwalk {

/// How TP cuts the matrices of a layout: all that a serial reference has to know of a grid, where numbers depend on it.
class TpCuts {
 public:
  /// Those of a layout, which has to hold all matrices that are asked for.
  explicit TpCuts(const Layout& layout);

  /// Into how many pieces the matrix of this name is cut: 1, or the size of TP. Throws std::invalid_argument, naming
  /// it, for one that the layout does not have.
  int pieces(const std::string& parameter) const;
  /// Whether they are rows of it; otherwise they are columns.
  bool by_rows(const std::string& parameter) const { return dim_of(parameter) == SplitDim::rows; }

 private:
  SplitDim dim_of(const std::string& parameter) const;
  int tp_;
  std::map<std::string, SplitDim> dims_;
};

/// Refuses settings with fused matrices, for a strategy that works on slices as TP cuts them, which may be across the
/// pieces. Throws UsageError, one sentence that names the strategy and a matrix.
void require_no_fused_matrices(const std::string& strategy, const MuonSettings& settings);

/// What a sentence calls one rank's slice of a matrix, whose rows and columns are counted from its own beginning: "w,
/// TP slice 1".
std::string slice_name(const DistMeta& meta, int tp_rank);

}  // namespace muonwalk
