#include <fmt/format.h>

#include "sim/cost_model/sweet_spot_output.hpp"
#include "sim/cost_model/sweet_spot_words.hpp"
#include "src/text/text.hpp"

namespace muonwalk::sim {
namespace {

std::string cell_text(const SweetSpotCell& cell, MapQuantity quantity) {
  const std::optional<double> ratio = ratio_of(cell, quantity);
  if (!ratio) return obstacle_word(obstacle_to(cell, quantity));
  std::string text = ratio_text(*ratio);
  if (quantity == MapQuantity::step) text += fmt::format(" {}", cell.step->best);
  return text + (is_extrapolated(cell, quantity) ? "*" : " ");
}

void add_table(const SweetSpotMap& map, MapQuantity quantity, std::vector<std::string>& lines) {
  std::vector<std::vector<std::string>> rows = {{"GPUs"}};
  for (std::size_t c = 0; c < map.column_values.size(); ++c) rows[0].push_back(column_text(map, c) + " ");
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    rows.push_back({number_text(map.gpus[r])});
    for (const SweetSpotCell& cell : map.cells[r]) rows.back().push_back(cell_text(cell, quantity));
  }
  lines.push_back(fmt::format("{}, Muon over AdamW, by {}", quantity_name(quantity), columns_heading(map)));
  append(lines, table_lines(rows, 0));
  lines.emplace_back();
}

}  // namespace

std::vector<std::string> sweet_spot_text(const SweetSpotMap& map) {
  std::vector<std::string> lines = {"Sweet-spot map: " + map.subject(), ""};
  add_table(map, MapQuantity::communication, lines);
  if (map.has_steps()) add_table(map, MapQuantity::step, lines);
  append(lines, wrap_text("* outside of what was measured. " + sides_text(map), 2));
  for (const Obstacle each : map.obstacles())
    append(lines, wrap_text(fmt::format("{}: {}.", obstacle_word(each), obstacle_sentence(each)), 2));
  for (const auto& [letter, name] : best_strategies({map}))
    append(lines, wrap_text(fmt::format("{}: {}.", letter, name), 2));
  for (const std::string& note : map.notes) append(lines, wrap_text(note, 2));
  return lines;
}

}  // namespace muonwalk::sim
