#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/cost_model/sweet_spot_output.hpp"
#include "src/text/names.hpp"

namespace muonwalk::sim {
namespace {

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

Json cell_json(const SweetSpotCell& cell) {
  return {{"gpus", cell.gpus},
          {"dp", cell.dp == 0 ? Json(nullptr) : Json(cell.dp)},
          {"tp", cell.tp},
          {"link_gb_per_s", cell.link_bytes_per_second / kGigabyte},
          {"obstacle", word_json(cell.obstacle)},
          {"communication", cell.communication ? communication_json(*cell.communication) : Json(nullptr)},
          {"step_obstacle", word_json(cell.step_obstacle)},
          {"step", cell.step ? step_json(*cell.step) : Json(nullptr)}};
}

Json line_json(const SweetSpotMap& map) {
  Json line = Json::array();
  for (const InversionSegment& segment : inversion_line(map))
    line.push_back({{"from", {segment.from.column, segment.from.row}}, {"to", {segment.to.column, segment.to.row}}});
  return line;
}

std::string cell_line(const SweetSpotMap& map, const SweetSpotCell& cell) {
  std::string line = fmt::format("{},{},{},{},{},{},{:.6g}", csv_cell(map.model), csv_cell(map.cluster),
                                 map_columns_name(map.columns), cell.gpus, cell.dp == 0 ? "" : std::to_string(cell.dp),
                                 cell.tp, cell.link_bytes_per_second / kGigabyte);
  if (const auto& of = cell.communication)
    line +=
        fmt::format(",,{:.6g},{:.6g},{:.6g},{:.6g},{:.0f},{:.0f},{}", of->ratio(), of->muon_seconds, of->adamw_seconds,
                    of->bytes_ratio(), of->muon_bytes, of->adamw_bytes, of->extrapolated ? 1 : 0);
  else
    line += fmt::format(",{},,,,,,,", obstacle_word(cell.obstacle));
  if (const auto& of = cell.step)
    line += fmt::format(",,{:.6g},{:.6g},{:.6g},{},{},{},{},{}", of->ratio(), of->muon_seconds, of->adamw_seconds,
                        of->best, of->layout.micro_batch, of->layout.accumulation,
                        recomputation_name(of->layout.recomputation), of->extrapolated ? 1 : 0);
  else
    line += fmt::format(",{},,,,,,,,",
                        cell.step_obstacle == Obstacle::unasked ? "not predicted" : obstacle_word(cell.step_obstacle));
  return line + "\n";
}

}  // namespace

std::string sweet_spot_json(const SweetSpotMap& map) {
  Json cells = Json::array();
  for (const auto& row : map.cells)
    for (const SweetSpotCell& cell : row) cells.push_back(cell_json(cell));
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

std::string sweet_spot_csv(const SweetSpotMap& map) {
  std::string csv =
      "model,cluster,over,gpus,dp,tp,link_gb_per_s,obstacle,communication_ratio,muon_communication_seconds,"
      "adamw_communication_seconds,bytes_ratio,muon_bytes,adamw_bytes,communication_extrapolated,step_obstacle,"
      "step_ratio,muon_step_seconds,adamw_step_seconds,best_strategy,mbs,grad_acc,recomputation,step_extrapolated\n";
  for (const auto& row : map.cells)
    for (const SweetSpotCell& cell : row) csv += cell_line(map, cell);
  return csv;
}

}  // namespace muonwalk::sim
