#pragma once

#include <string>
#include <vector>

namespace muonwalk {

/// Where a rank stands in the grid.
struct Place {
  int rank = 0;  ///< Counted over the whole world.
  int dp = 0, tp = 0;
  int pp = 0;  ///< The pipeline stage.
};

/// Ranks that talk among themselves: the name of their group, and its ranks as the world numbers them, in the order of
/// their numbers in the group.
struct Group {
  std::string name;        ///< "dp"
  std::vector<int> ranks;  ///< There is at least one, unless this stands for a group that a rank has no part in.

  int size() const { return static_cast<int>(ranks.size()); }
  /// The group's number for a rank of the world; −1 when the rank is not in the group.
  int number_of(int rank) const;
};

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

  int dp() const { return dp_; }
  int tp() const { return tp_; }
  int pp() const { return pp_; }
  /// The number of all ranks: dp · tp · pp.
  int size() const { return dp_ * tp_ * pp_; }

  /// The coordinates of a rank, 0 ≤ rank < size(). Throws std::out_of_range, as the following do.
  Place place(int rank) const;
  int rank(int dp, int tp, int pp = 0) const;

  /// The group of this name that `rank` belongs to, in the order of the ranks. A name is "dp", "tp" or "pp" for the
  /// ranks that differ in this coordinate only; "dp × tp", "dp × pp", "tp × pp" or "dp × tp × pp" for those that differ
  /// in these; "world" for all; "first and last stage" for the two ends of a pipeline (the stages in between are in no
  /// such group, and theirs has no ranks); "ep 4" for the four DP ranks, consecutive ones, that experts are dealt out
  /// to (expert parallelism), and "dp / ep 4" for those DP ranks that hold the same experts then. Throws UsageError for
  /// any other, and where the number of EP ranks does not divide that of DP ranks.
  Group group(const std::string& name, int rank) const;
  /// Every group of this name, ordered by its lowest rank. A rank is in at most one of them.
  std::vector<Group> groups(const std::string& name) const;
  /// The number of ranks in each group of this name: size("dp") == dp().
  int size(const std::string& name) const;

  /// "dp 4 × tp 2", with " × pp N" only where pp > 1.
  std::string text() const;

  friend bool operator==(const Grid& a, const Grid& b) { return a.dp_ == b.dp_ && a.tp_ == b.tp_ && a.pp_ == b.pp_; }

 private:
  int dp_ = 1;
  int tp_ = 1;
  int pp_ = 1;
};

/// "ranks 2–3  dp 1", "ranks 0, 2  tp 0" or "rank 3  dp 1 tp 1": ranks in ascending order and the coordinates that all
/// of them share, of those of which the grid has more than one.
std::string ranks_label(const Grid& grid, const std::vector<int>& ranks);
inline std::string rank_label(const Grid& grid, int rank) { return ranks_label(grid, {rank}); }

}  // namespace muonwalk
