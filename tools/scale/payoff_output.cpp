#include "tools/scale/payoff_output.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "tools/scale/payoff_words.hpp"

namespace muonwalk::sim {
namespace {

std::string cell_text(const PayoffCell& cell, MapQuantity quantity) {
  const std::optional<double> ratio = ratio_of(cell, quantity);
  if (!ratio) return obstacle_word(obstacle_to(cell, quantity));
  std::string text = ratio_text(*ratio);
  if (quantity == MapQuantity::step) text += fmt::format(" {}", cell.step->best);
  return text + (is_extrapolated(cell, quantity) ? "*" : " ");
}

void add_table(const PayoffMap& map, MapQuantity quantity, std::vector<std::string>& lines) {
  Table table({{"GPUs", number_text}});
  for (std::size_t c = 0; c < map.column_values.size(); ++c) table.column({column_text(map, c) + " ", Side::right});
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    std::vector<Cell> row = {map.gpus[r]};
    for (const PayoffCell& cell : map.cells[r]) row.emplace_back(cell_text(cell, quantity));
    table.row(row);
  }
  lines.push_back(fmt::format("{}, Muon over AdamW, by {}", quantity_name(quantity), columns_heading(map)));
  append(lines, table.lines());
  lines.emplace_back();
}

// ── As JSON

using Json = nlohmann::ordered_json;

Json word_json(Obstacle obstacle) {
  if (obstacle == Obstacle::none) return nullptr;
  return obstacle == Obstacle::unasked ? "not predicted" : obstacle_word(obstacle);
}

Json communication_json(const CommunicationComparison& of) {
  return {{"ratio", of.ratio()},
          {"muon_seconds", of.muon_seconds},
          {"adamw_seconds", of.adamw_seconds},
          {"bytes_ratio", of.bytes_ratio()},
          {"muon_bytes", of.muon_bytes},
          {"adamw_bytes", of.adamw_bytes},
          {"extrapolated", of.extrapolated}};
}

Json step_json(const StepComparison& of) {
  Json strategies = Json::object();
  for (const auto& [letter, seconds] : of.strategies) strategies[std::string(1, letter)] = seconds;
  return {{"ratio", of.ratio()},
          {"muon_seconds", of.muon_seconds},
          {"adamw_seconds", of.adamw_seconds},
          {"best_strategy", std::string(1, of.best)},
          {"seconds_by_strategy", strategies},
          {"micro_batch_sequences", of.layout.micro_batch},
          {"accumulation", of.layout.accumulation},
          {"ep", of.layout.ep},
          {"recomputation", recomputation_name(of.layout.recomputation)},
          {"extrapolated", of.extrapolated}};
}

Json cell_json(const PayoffCell& cell) {
  return {{"gpus", cell.gpus},
          {"dp", cell.dp == 0 ? Json(nullptr) : Json(cell.dp)},
          {"tp", cell.tp},
          {"link_gb_per_s", cell.link_bytes_per_second / kGigabyte},
          {"obstacle", word_json(cell.obstacle)},
          {"communication", cell.communication ? communication_json(*cell.communication) : Json(nullptr)},
          {"step_obstacle", word_json(cell.step_obstacle)},
          {"step", cell.step ? step_json(*cell.step) : Json(nullptr)}};
}

Json line_json(const PayoffMap& map) {
  Json line = Json::array();
  for (const InversionSegment& segment : inversion_line(map))
    line.push_back({{"from", {segment.from.column, segment.from.row}}, {"to", {segment.to.column, segment.to.row}}});
  return line;
}

}  // namespace

std::vector<std::string> payoff_text(const PayoffMap& map) {
  std::vector<std::string> lines = {"Where Muon pays: " + map.subject(), ""};
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

std::string payoff_json(const PayoffMap& map) {
  Json cells = Json::array();
  for (const auto& row : map.cells)
    for (const PayoffCell& cell : row) cells.push_back(cell_json(cell));
  const Json json = {
      {"format", "muonwalk-scale-map"},
      {"version", 1},
      {"model", map.model},
      {"cluster", map.cluster},
      {"over", map_columns_name(map.columns)},
      {"gpus", map.gpus},
      {map.columns == MapColumns::links ? "links_bytes_per_second" : "tp", map.column_values},
      {"own_link_gb_per_s",
       map.own_link_bytes_per_second > 0 ? Json(map.own_link_bytes_per_second / kGigabyte) : Json(nullptr)},
      {"notes", map.notes},
      {"inversion_line_cells", line_json(map)},
      {"cells", cells}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace muonwalk::sim
