#pragma once

#include <vector>

namespace muonwalk::sim {

/// The constants that were fitted, all of them, to the runs of 1B, 3B and 8B models in records/ultrascale_runs.csv.
/// They hold for every model, layout and number of nodes; whatever else the model of a training run reckons with was
/// published or is counted. Meanings: fitted_constants.
/// @{
constexpr double kProductEfficiency = 0.493;
constexpr double kHostSecondsPerLayer = 4.46e-3;
constexpr double kNodeHopSeconds = 0.49e-3;
constexpr double kPipelineRankSeconds = 2.09e-3;
constexpr double kNodeLinkShare = 0.636;
constexpr double kGroupSecondsPerDoubling = 0.020;
constexpr double kRemapSecondsPerGibibyte = 0.1;
constexpr double kUsableShare = 0.825;
/// @}

/// One of them, for a table.
struct FittedConstant {
  const char* name;     ///< "product efficiency"
  double value;         ///< in `unit`
  const char* unit;     ///< "s"; "1" for a share
  const char* meaning;  ///< what it is, and why it is there
};

/// All of them, in the order in which they stand above.
const std::vector<FittedConstant>& fitted_constants();

}  // namespace muonwalk::sim
