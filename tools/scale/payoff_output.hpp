#pragma once

#include <string>
#include <vector>

#include "tools/scale/payoff_map.hpp"

namespace muonwalk::sim {

/// A map as lines of at most 100 columns: a table for each ratio, and what the figures are.
std::vector<std::string> payoff_text(const PayoffMap& map);

/// Maps of one model on one cluster as a page that needs no other file and no network: one of them is shown at a time,
/// with one of its ratios, and a cell that is pointed at or chosen with the keys says all of its figures. payoff_text
/// stands below, which needs no script. Throws std::invalid_argument where there is no map.
std::string payoff_page(const std::vector<PayoffMap>& maps);

/// A map as JSON, the format "muonwalk-scale-map", with a line end at its end. Every field has its unit in its name;
/// what a cell does not have is null, and "obstacle" and "step_obstacle" say why.
std::string payoff_json(const PayoffMap& map);

/// A ratio in at most six characters, never 0: "0.57", "12.3", "<0.01".
std::string ratio_text(double ratio);

}  // namespace muonwalk::sim
