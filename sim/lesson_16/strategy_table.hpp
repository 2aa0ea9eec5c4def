#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/layout/grid.hpp"
#include "src/layout/parameter.hpp"
#include "src/strategies/strategy_cost.hpp"

namespace muonwalk::sim {

/// What a byte, a message and an operation cost.
struct Price {
  double gigabytes_per_second = 0;  ///< that a rank sends
  double microseconds = 0;          ///< that a message takes besides, however small it is
  double teraflops = 0;             ///< that a rank computes, in 10^12 operations per second
};

/// "50,10,400": GB/s, µs and TFLOP/s. Throws UsageError for anything but three numbers, of which the first and the last
/// are above 0, and the second is at least 0.
Price parse_price(const std::string& text);

/// Strategies with what each of them costs, in the order of their letters.
using StrategyCosts = std::vector<std::pair<Strategy, StrategyCost>>;

/// All of them, for these parameters on a grid (strategy_cost.hpp). Throws as strategy_cost does.
StrategyCosts costs_of(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket,
                       const MuonSettings& settings);
/// The same for what Muon takes of a published model, cut by TP as Megatron-LM cuts it, in buckets of megatron_bucket.
/// Throws UsageError for a name that is not known.
StrategyCosts costs_of_model(const std::string& model, const Grid& grid, const MuonSettings& settings);

/// They as a table, a line each, per step: bytes and messages of the rank that sends most, FLOPs of the rank that
/// computes most and in the mean, redundancy, what a rank keeps, what it holds for a moment, and the time that this
/// takes at a price, where one rank has the most of everything. The line below names the cheapest strategy with the
/// serial step's bits, and the cheapest of all where that is another. At most 100 columns.
std::string strategy_table(const StrategyCosts& costs, const Grid& grid, const Price& price);

/// They as a picture: for each strategy three bars, for bytes sent, FLOPs, and what is held for a moment, of the rank
/// that has most of each. The longest bar of a kind is as long as there is room, and all are drawn to its scale.
std::string strategy_picture(const StrategyCosts& costs, const Grid& grid);

}  // namespace muonwalk::sim
