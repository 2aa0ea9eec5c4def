#pragma once

#include <string>
#include <vector>

#include "sim/cost_model/sweet_spot_map.hpp"

namespace muonwalk::sim {

/// A map as lines of at most 100 columns: a table for each ratio, and what the figures are.
std::vector<std::string> sweet_spot_text(const SweetSpotMap& map);

/// A map as an SVG picture: a cell for each layout with the ratio of communication, and below it that of the step and
/// the letter of the best strategy; hatched where a figure lies outside of what was measured; a word where there is
/// none; and the line along which Muon's communication takes as long as AdamW's. It carries a title, a description and
/// a legend, and its own colours (sim/pictures/palette.hpp) for light and dark.
std::string sweet_spot_svg(const SweetSpotMap& map);

/// Maps of one model on one cluster as a page that needs no other file and no network: one of them is shown at a time,
/// with one of its ratios, and a cell that is pointed at or chosen with the keys says all of its figures. Tables say
/// the same without a script. Throws std::invalid_argument where there is no map.
std::string sweet_spot_page(const std::vector<SweetSpotMap>& maps);

/// A map as JSON, the format "muonwalk-scale-map", with a line end at its end. Every field has its unit in its name;
/// what a cell does not have is null, and "obstacle" and "step_obstacle" say why.
std::string sweet_spot_json(const SweetSpotMap& map);

/// A map as CSV, a line per cell; what a cell does not have is empty.
std::string sweet_spot_csv(const SweetSpotMap& map);

}  // namespace muonwalk::sim
