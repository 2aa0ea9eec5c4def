#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/replay/palette.hpp"
#include "tools/scale/payoff_map.hpp"

namespace muonwalk::sim {

/// What pages and tables of a map have in common: the words of its cells, and their fills.

/// Which of the two ratios of a cell.
enum class MapQuantity {
  communication,  ///< CommunicationComparison::ratio
  step            ///< StepComparison::ratio
};
constexpr MapQuantity kMapQuantities[] = {MapQuantity::communication, MapQuantity::step};

/// "communication" and "step".
const char* quantity_name(MapQuantity quantity);

/// The ratio of a cell; nothing where there is none.
std::optional<double> ratio_of(const PayoffCell& cell, MapQuantity quantity);

/// Whether that ratio rests on a figure outside of what was measured.
bool is_extrapolated(const PayoffCell& cell, MapQuantity quantity);

/// Why a cell does not have this ratio.
Obstacle obstacle_to(const PayoffCell& cell, MapQuantity quantity);

/// A ratio in at most five characters, never 0: "0.57", "12.3", "<0.01".
std::string ratio_text(double ratio);

/// A ratio with three digits after the point, where there is room, as whole steps differ by little: "1.003".
std::string fine_ratio_text(double ratio);

/// What stands over a column, "64", and what all of them are.
/// @{
std::string column_text(const PayoffMap& map, std::size_t column);
std::string columns_heading(const PayoffMap& map);
/// @}

/// A cell in words, a fact each, the first of which says which cell it is.
std::vector<std::string> cell_facts(const PayoffCell& cell);

/// How the map divides, in a sentence: in how many cells Muon's communication takes less time, in how many more, and
/// how many have no figure.
std::string sides_text(const PayoffMap& map);

/// The strategies that are the best in a cell of these maps, by their letters, with their names.
std::vector<std::pair<char, std::string>> best_strategies(const std::vector<PayoffMap>& maps);

/// The fills of ratios: from far below 1 to far above.
constexpr int kMapBands = 6;
/// The band of a ratio: 0 to 2 are below 1, 3 to 5 are not.
int band_of(double ratio, MapQuantity quantity);
/// "below 0.5", "0.5 to 0.8", …
std::string band_text(int band, MapQuantity quantity);
/// The colour of a band: one for all below 1, another for the rest. Those nearer to 1 are paler, by band_opacity.
/// @{
Colour band_colour(int band);
double band_opacity(int band);
/// @}

}  // namespace muonwalk::sim
