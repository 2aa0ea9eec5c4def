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

/// What bytes and messages cost over the links of a group.
struct LinkPrice {
  double gigabytes_per_second = 0;  ///< A rank sends as much.
  double microseconds = 0;          ///< A message takes this besides, however small it is.
};

/// What a byte, a message and an operation cost.
struct Price {
  LinkPrice dp, tp;      ///< Often tp lies within a node, and dp does not.
  double teraflops = 0;  ///< A rank computes 10^12 operations per second for each of these.
};

/// Reads "50,10,400": GB/s, µs and TFLOP/s. Throws UsageError for anything but three numbers, of which the first and
/// the last are above 0 and the second is at least 0.
Price parse_price(const std::string& text);

/// The price on a cluster of tools/scale, a name or a file: the links of the outermost level that a group of the grid
/// crosses, and the operations of products as large as the mean matrix's. Throws as cluster_of and group_spread do.
Price price_on(const std::string& cluster, const Grid& grid, const std::vector<Parameter>& parameters);

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

/// The table of a model. Above it whose batch it is (batch_text; 0 tokens: those of model_shape); below it what the
/// price of the best strategy that is Muon is of the model's own products in such a step, and which input decides
/// between it and the next one, and between it and (g), each with its break-even.
std::string model_table(const std::string& model, const StrategyCosts& costs, const Grid& grid, const Price& price,
                        std::int64_t batch_tokens);

/// How far strategies that are not Muon to the last bit are from it, for TP of 2 and of 4: of two steps, the new
/// weights that have other bits than the serial step's, and the distance of the two updates over the length of the
/// serial one. References work it out, without ranks.
std::string distance_table(const Training& training, const MuonSettings& settings, int dp, Index bucket);

}  // namespace muonwalk::sim
