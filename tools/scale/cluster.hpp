#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace muonwalk::sim {

/// A place at which a curve was read, although nothing was measured there.
struct Outside {
  double at = 0;       ///< Where it was read.
  double nearest = 0;  ///< The measured point that is nearest.
};

/// What a curve says at one point.
struct CurveReading {
  double value = 0;                     ///< In the curve's own unit. Outside of its range: that of the nearest point.
  std::optional<Outside> outside = {};  ///< The point lies outside of the range that was measured.
};

/// A quantity that was measured at some points: the bandwidth of a collective by nodes, the efficiency of a product by
/// its size. Between two points it is interpolated, both axes as logarithms. Outside of them it stays at the nearest
/// point, and says so: nothing here extrapolates in silence.
struct MeasuredCurve {
  /// One measurement. Both numbers are above 0.
  struct Point {
    double at = 0, value = 0;
  };

  std::vector<Point> points;  ///< From left to right; none where nothing was measured.
  std::string source;         ///< Where the points come from.

  bool measured() const { return !points.empty(); }
  /// The value at `at`. Throws std::invalid_argument unless that is above 0 and finite and there is a point.
  CurveReading at(double at) const;
};

/// One GB is 10⁹ bytes and one GiB is 2³⁰; a card of "80 GB" has 80 GiB of memory.
/// @{
constexpr double kGigabyte = 1e9;
constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
/// @}

/// A GPU, or a processor core that stands in for one.
struct Accelerator {
  std::string name;             ///< "H100"
  double flops_per_second = 0;  ///< Dense, in the type that products are computed in (bf16 on a GPU).
  double memory_bytes = 0;
  double memory_bytes_per_second = 0;  ///< How fast it reads or writes its memory.
  /// The share of flops_per_second that a product reaches, by its FLOPs: a curve for everybody who measured it on this
  /// accelerator; none where nobody did.
  std::vector<MeasuredCurve> product_efficiency;
  std::string source;  ///< Where these numbers come from.
};

/// The share of its peak that an accelerator reaches in products of one size, with the band in which it may lie.
struct ProductEfficiency {
  double value = 1;                ///< The middle of the band: the root of low · high.
  double low = 1, high = 1;        ///< The least and the most that was measured of products of this size.
  const char* source = "";         ///< Whether that was on this accelerator.
  std::optional<Outside> outside;  ///< No curve has products of this size, in FLOPs.
  bool elsewhere = false;          ///< It was measured on other accelerators alone.
};

/// The efficiency of products of `product` FLOPs each, whoever asks: a model's layers and Newton–Schulz alike. Where
/// nothing was measured on this accelerator, the band is what the GPUs of known clusters reach that were measured.
ProductEfficiency product_efficiency(const Accelerator& accelerator, double product);

/// One level of a network: what joins the accelerators of a node, the nodes of a pod, the pods. Every accelerator has
/// a link of its own into it, or an equal part of those that its unit of the level below has.
struct NetworkLevel {
  std::string name;             ///< "NVLink", "EFA"
  int accelerators = 0;         ///< How many one such unit joins; 0 for the outermost level: all of them.
  double bytes_per_second = 0;  ///< Out of one accelerator, in one direction, while all of its neighbours send too.
  double latency_seconds = 0;   ///< Until a message's first byte has arrived.
  /// Bus bandwidth of a collective, in bytes per second, by the number of units of the level below that take part, with
  /// all accelerators of each. Measured as a whole, so it holds for the levels inside of this one as well; may be
  /// empty, then bytes_per_second holds.
  /// @{
  MeasuredCurve all_reduce;
  MeasuredCurve all_gather;  ///< It also stands for a reduce-scatter.
  /// @}
  std::string source;  ///< Where these numbers come from.
};

/// A cluster: equal accelerators under levels of network, the innermost first.
struct Cluster {
  std::string name;                  ///< "h100-efa"
  Accelerator accelerator;           ///< All accelerators are alike.
  std::vector<NetworkLevel> levels;  ///< At least one.
  /// How many accelerators a node has: those of the innermost level.
  int node() const { return levels.front().accelerators; }
  /// How many accelerators a unit of the level below `level` has: 1 below the innermost one.
  int unit_below(std::size_t level) const { return level == 0 ? 1 : levels[level - 1].accelerators; }
};

/// The clusters that are known by name, in the order in which they are listed (tools/scale/clusters).
std::vector<std::string> cluster_names();

/// The cluster of that name, or, where `name` ends in ".json", the one that the file describes (docs/cost-model.md has
/// its fields, each with its unit in its name). Throws UsageError, one sentence, for an unknown name, a file that can't
/// be read, a field that is missing, unknown, twice there, or not a number above 0.
Cluster cluster_of(const std::string& name);

/// How the ranks of a group lie in a cluster that is filled in rank order.
struct GroupSpread {
  /// For each level, how many units of the level below it the group lies in: 1 where it does not cross the level. The
  /// product of all is the group's ranks.
  std::vector<int> widths;
  /// For each level, how many ranks of the group are in one unit of the level below it.
  std::vector<int> inside;
  /// For each level, how many such groups send out of one unit of the level below at the same time.
  std::vector<int> sharing;
};

/// The group of `ranks` ranks, each `stride` after the one before: tp has a stride of 1, dp of tp, pp of tp · dp
/// (src/layout/grid.hpp). A level holds as many members of the group as fit into its accelerators. Throws UsageError
/// where the cluster's levels and the group do not divide each other so that every unit holds as many members, and
/// where the cluster is too small for the group; std::invalid_argument for ranks or a stride below 1.
GroupSpread group_spread(const Cluster& cluster, int ranks, int stride);

}  // namespace muonwalk::sim
