#pragma once

#include <string>
#include <vector>

namespace muonwalk {

/// Where a rank stands in the grid.
struct Place {
  int rank = 0;  ///< its number in the world
  int dp = 0;    ///< its coordinate among the data-parallel ranks
  int tp = 0;    ///< its coordinate among the tensor-parallel ranks
  int pp = 0;    ///< its pipeline stage
};

/// The three kinds of groups, each named after the coordinate along which its members differ.
enum class GroupKind { dp, tp, pp };

/// "dp", "tp", "pp".
const char* group_name(GroupKind kind);

/// The grid of ranks, dp × tp × pp, in Megatron's rank order: tp varies fastest, then dp, then pp, so
/// rank = tp + TP · (dp + DP · pp). Built as `Grid().dp(4).tp(2)`; sizes that are not named are 1.
class Grid {
 public:
  /// Sets the size of one dimension and returns the grid. Throws UsageError when `size` is less than 1, or the grid has
  /// more ranks than an int can number.
  /// @{
  Grid& dp(int size);
  Grid& tp(int size);
  Grid& pp(int size);
  /// @}

  /// The size of one dimension.
  /// @{
  int dp() const { return dp_; }
  int tp() const { return tp_; }
  int pp() const { return pp_; }
  /// @}
  /// The number of ranks of one kind of group, e.g. size(GroupKind::dp) == dp().
  int size(GroupKind kind) const;
  /// All ranks: dp · tp · pp.
  int size() const { return dp_ * tp_ * pp_; }

  /// The coordinates of a rank, 0 ≤ rank < size(). Throws std::out_of_range, as the following do.
  Place place(int rank) const;
  /// The rank at the coordinates.
  int rank(int dp, int tp, int pp = 0) const;

  /// The ranks of the group of this kind that `rank` belongs to, in the order of the coordinate.
  std::vector<int> group(GroupKind kind, int rank) const;
  /// Every group of this kind, ordered by its lowest rank. Each rank is in exactly one of them.
  std::vector<std::vector<int>> groups(GroupKind kind) const;

  /// "dp 4 × tp 2", with " × pp N" only where pp > 1.
  std::string text() const;

  /// All three sizes are equal.
  friend bool operator==(const Grid& a, const Grid& b) { return a.dp_ == b.dp_ && a.tp_ == b.tp_ && a.pp_ == b.pp_; }

 private:
  int dp_ = 1;
  int tp_ = 1;
  int pp_ = 1;
};

/// "rank 3  dp 1 tp 1": the coordinates of which the grid has more than one.
std::string rank_label(const Grid& grid, int rank);

}  // namespace muonwalk
