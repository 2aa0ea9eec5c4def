#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/optim/strategies/strategy_cost.hpp"
#include "src/train/training.hpp"

namespace muonwalk::sim {

/// "(a) gather everything", and "(a) after step 1" for the step with the number 0.
/// @{
std::string title(const Strategy& strategy);
std::string title(const Strategy& strategy, int step);
/// @}

/// What a byte, a message and an operation cost.
struct Price {
  double gigabytes_per_second = 0;  ///< A rank sends as much.
  double microseconds = 0;          ///< A message takes this besides, however small it is.
  double teraflops = 0;             ///< A rank computes 10^12 operations per second for each of these.
};

/// Reads "50,10,400": GB/s, µs and TFLOP/s. Throws UsageError for anything but three numbers, of which the first and
/// the last are above 0 and the second is at least 0.
Price parse_price(const std::string& text);

/// Strategies with what each of them costs, in the order of their letters.
using StrategyCosts = std::vector<std::pair<Strategy, StrategyCost>>;

/// The costs of all strategies for these parameters on a grid. Throws as strategy_cost does.
StrategyCosts costs_of(const std::vector<Parameter>& parameters, const Grid& grid, Index bucket,
                       const MuonSettings& settings);
/// The costs for what Muon takes of a published model, cut by TP as Megatron-LM cuts it, in buckets of megatron_bucket.
/// Throws UsageError for a name that is not known.
StrategyCosts costs_of_model(const std::string& model, const Grid& grid, const MuonSettings& settings);

/// A line for each strategy, per step: what the busiest rank sends, computes, keeps and holds for a moment, and what
/// that costs at a price. The line below names the cheapest strategy with the serial step's bits, and the cheapest of
/// all where that is another.
std::string strategy_table(const StrategyCosts& costs, const Grid& grid, const Price& price);

/// Three bars for each strategy: bytes sent, FLOPs, and what is held for a moment, of the rank that has most of each.
/// All bars of a kind have one scale.
std::string strategy_picture(const StrategyCosts& costs, const Grid& grid);

/// How far strategies that are not Muon to the last bit are from it, for TP of 2 and of 4: of two steps, the new
/// weights that have other bits than the serial step's, and the distance of the two updates over the length of the
/// serial one. References work it out, without ranks.
std::string distance_table(const Training& training, const MuonSettings& settings, int dp, Index bucket);

}  // namespace muonwalk::sim
