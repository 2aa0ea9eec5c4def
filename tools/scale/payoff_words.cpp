#include "tools/scale/payoff_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "src/optim/strategies/strategy.hpp"
#include "src/text/units.hpp"

namespace muonwalk::sim {
namespace {

// Where a band ends and the next begins.
using Bounds = std::array<double, kMapBands - 1>;
constexpr Bounds kCommunicationBounds = {0.5, 0.8, 1, 1.25, 2};
constexpr Bounds kStepBounds = {0.9, 0.97, 1, 1.03, 1.1};  // which a step with all of its work is nearer to

const Bounds& bounds_of(MapQuantity quantity) {
  return quantity == MapQuantity::communication ? kCommunicationBounds : kStepBounds;
}

void add_communication(const CommunicationComparison& of, std::vector<std::string>& facts) {
  facts.push_back(fmt::format("communication {}: Muon sends for {}, AdamW for {}", ratio_text(of.ratio()),
                              seconds_text(of.muon_seconds), seconds_text(of.adamw_seconds)));
  facts.push_back(fmt::format("bytes {}: Muon {}, AdamW {}", ratio_text(of.bytes_ratio()),
                              prefixed_text(of.muon_bytes, "B"), prefixed_text(of.adamw_bytes, "B")));
  if (of.extrapolated) facts.emplace_back("communication is outside of what was measured");
}

void add_step(const StepComparison& of, std::vector<std::string>& facts) {
  facts.push_back(fmt::format("step {}: Muon {} with strategy ({}), AdamW {}", fine_ratio_text(of.ratio()),
                              seconds_text(of.muon_seconds), of.best, seconds_text(of.adamw_seconds)));
  facts.push_back(text(of.layout));
  if (of.extrapolated) facts.emplace_back("the step is outside of what was measured");
}

}  // namespace

const char* quantity_name(MapQuantity quantity) {
  return quantity == MapQuantity::communication ? "communication" : "step";
}

std::optional<double> ratio_of(const PayoffCell& cell, MapQuantity quantity) {
  if (quantity == MapQuantity::communication)
    return cell.communication ? std::optional<double>(cell.communication->ratio()) : std::nullopt;
  return cell.step ? std::optional<double>(cell.step->ratio()) : std::nullopt;
}

bool is_extrapolated(const PayoffCell& cell, MapQuantity quantity) {
  if (quantity == MapQuantity::communication) return cell.communication && cell.communication->extrapolated;
  return cell.step && cell.step->extrapolated;
}

Obstacle obstacle_to(const PayoffCell& cell, MapQuantity quantity) {
  return quantity == MapQuantity::communication ? cell.obstacle : cell.step_obstacle;
}

std::string ratio_text(double ratio) {
  if (ratio < 0.005) return "<0.01";
  if (ratio < 9.995) return fmt::format("{:.2f}", ratio);
  return ratio < 99.95 ? fmt::format("{:.1f}", ratio) : ratio < 99999.5 ? fmt::format("{:.0f}", ratio) : ">99999";
}

std::string fine_ratio_text(double ratio) {
  return ratio < 0.0995 || ratio >= 9.9995 ? ratio_text(ratio) : fmt::format("{:.3f}", ratio);
}

std::string column_text(const PayoffMap& map, std::size_t column) {
  const double value = map.column_values[column];
  return fmt::format("{:.4g}", map.columns == MapColumns::links ? value / kGigabyte : value);
}

std::string columns_heading(const PayoffMap& map) {
  return map.columns == MapColumns::links ? "GB/s between nodes, out of each GPU" : "tensor-parallel ranks (tp)";
}

std::vector<std::string> cell_facts(const PayoffCell& cell) {
  std::vector<std::string> facts;
  facts.push_back(cell.dp == 0
                      ? fmt::format("{} GPUs, tp {}", number_text(cell.gpus), cell.tp)
                      : fmt::format("{} GPUs = dp {} × tp {}", number_text(cell.gpus), number_text(cell.dp), cell.tp));
  facts.push_back(fmt::format("{:.4g} GB/s between nodes", cell.link_bytes_per_second / kGigabyte));
  if (cell.obstacle != Obstacle::none) {
    facts.push_back(std::string("no figure: ") + obstacle_sentence(cell.obstacle));
    return facts;
  }
  add_communication(*cell.communication, facts);
  if (cell.step) add_step(*cell.step, facts);
  if (!cell.step && cell.step_obstacle != Obstacle::unasked)
    facts.push_back(std::string("no step: ") + obstacle_sentence(cell.step_obstacle));
  return facts;
}

std::string sides_text(const PayoffMap& map) {
  int below = 0, above = 0, without = 0;
  for (const auto& row : map.cells)
    for (const PayoffCell& cell : row) {
      const std::optional<double> ratio = ratio_of(cell, MapQuantity::communication);
      (!ratio ? without : *ratio < 1 ? below : above) += 1;
    }
  std::string text = fmt::format("Muon sends for less time than AdamW in {} of {} cells, and not in {}", below,
                                 below + above + without, above);
  return text + (without == 0 ? "." : fmt::format("; {} have no figure.", without));
}

std::vector<std::pair<char, std::string>> best_strategies(const std::vector<PayoffMap>& maps) {
  std::set<char> letters;
  for (const PayoffMap& map : maps)
    for (const auto& row : map.cells)
      for (const PayoffCell& cell : row)
        if (cell.step) letters.insert(cell.step->best);
  std::vector<std::pair<char, std::string>> names;
  for (const Strategy& strategy : strategies())
    if (letters.count(strategy.letter) > 0) names.emplace_back(strategy.letter, strategy.name);
  return names;
}

int band_of(double ratio, MapQuantity quantity) {
  const Bounds& bounds = bounds_of(quantity);
  return static_cast<int>(std::upper_bound(bounds.begin(), bounds.end(), ratio) - bounds.begin());
}

std::string band_text(int band, MapQuantity quantity) {
  const Bounds& bounds = bounds_of(quantity);
  const auto at = static_cast<std::size_t>(band);
  if (band == 0) return fmt::format("below {}", bounds.front());
  if (band == kMapBands - 1) return fmt::format("{} and more", bounds.back());
  return fmt::format("{} to {}", bounds[at - 1], bounds[at]);
}

Colour band_colour(int band) { return parameter_colour(2 * band < kMapBands ? 0 : 4); }

double band_opacity(int band) {
  constexpr double kOpacities[] = {1, 0.65, 0.3};
  return kOpacities[2 * band < kMapBands ? band : kMapBands - 1 - band];
}

}  // namespace muonwalk::sim
