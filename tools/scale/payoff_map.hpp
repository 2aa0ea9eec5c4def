#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/scale/cluster.hpp"
#include "tools/scale/comparison.hpp"
#include "tools/scale/model_shape.hpp"

namespace muonwalk::sim {

/// What a map's columns are; its rows are numbers of GPUs.
enum class MapColumns {
  links,  ///< Speeds of the link that each GPU has between nodes, in bytes per second.
  grid    ///< Tensor-parallel ranks; dp is the number of GPUs over that.
};

/// The names of the columns are "links" and "grid". Any other word is refused with a UsageError.
/// @{
const char* map_columns_name(MapColumns columns);
MapColumns parse_map_columns(const std::string& word);
/// @}

/// Why there is no figure.
struct Obstacle {
  const char* word;      ///< What stands in a cell.
  const char* sentence;  ///< What the word stands for, in a legend.
};

/// All obstacles.
namespace obstacles {
inline constexpr Obstacle too_few{"few", "fewer GPUs than tensor-parallel ranks"};
inline constexpr Obstacle tp{"tp", "tp does not divide the GPUs, the heads or a matrix"};
inline constexpr Obstacle nodes{"nodes", "groups of ranks do not lie evenly in nodes"};
inline constexpr Obstacle batch{"batch", "dp does not divide the batch"};
inline constexpr Obstacle memory{"memory", "no layout without pipeline stages fits into memory"};
}  // namespace obstacles

/// One layout on one cluster.
struct PayoffCell {
  int gpus = 0;
  int dp = 0;  ///< 0 where the GPUs are not a multiple of tp.
  int tp = 0;
  double link_bytes_per_second = 0;    ///< Between nodes, out of each GPU.
  const Obstacle* obstacle = nullptr;  ///< Why there is no layout, and neither of the two comparisons.
  std::optional<CommunicationComparison> communication;
  const Obstacle* step_obstacle = nullptr;  ///< Why there is no step.
  std::optional<StepComparison> step;
};

/// Which map is asked for. Everything that it refers to must outlive the call.
struct PayoffQuestion {
  const ModelShape& model;                 ///< The model that is trained.
  const Cluster& cluster;                  ///< Where it is trained; a map over links varies its links.
  const TrainingSoftware& software;        ///< The program that trains it.
  MapColumns columns = MapColumns::links;  ///< What varies beside the number of GPUs.
  int most_gpus = 100'000;                 ///< The last row has this many, or as many of them as are whole nodes.
};

/// A map: rows from few GPUs to many, columns from slow links to fast ones, or from small groups to large ones.
struct PayoffMap {
  std::string model, cluster;                  ///< Their names.
  MapColumns columns = MapColumns::links;      ///< What `column_values` are.
  std::vector<int> gpus;                       ///< One for each row.
  std::vector<double> column_values;           ///< One for each column.
  std::vector<std::vector<PayoffCell>> cells;  ///< [row][column]
  int tp = 0;                                  ///< What all cells of a map over links have.
  double own_link_bytes_per_second = 0;        ///< The cluster as it is; 0 where it has one level only.
  std::vector<std::string> notes;              ///< Sentences on what the figures are, and are not.

  /// "llama-7b on h100-efa".
  std::string subject() const;
};

/// The map. Rows are powers of two up to a node, then a node times powers of two, then the last one. Links between
/// nodes go from 1 to 256 GB/s per GPU in powers of two, a measured bandwidth growing in proportion; tp goes from 1 to
/// 64, and is in a map over links the largest power of two, up to 8, that divides a node and cuts the model. Throws
/// UsageError, one sentence, where a map over links has no nodes that a link could lie between or less GPUs than a
/// node, and for fewer than 2 GPUs.
PayoffMap payoff_map(const PayoffQuestion& question);

/// The map that was asked for, and after it the one with the other columns where there can be one: a page has both.
/// Throws as payoff_map does.
std::vector<PayoffMap> payoff_maps(const PayoffQuestion& question);

}  // namespace muonwalk::sim
