#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/replay/page_parts.hpp"
#include "sim/replay/page_texts.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/names.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"
#include "tools/scale/payoff_output.hpp"
#include "tools/scale/payoff_words.hpp"

namespace muonwalk::sim {

namespace page_texts {
extern const char *const map_html, *const map_css, *const map_js;  // the folder page/, by embed_texts
}

namespace {

using nlohmann::json;

std::string choice_text(const PayoffMap& map) {
  return map.columns == MapColumns::links ? fmt::format("GPUs × link speed, tp {}", map.tp) : "dp × tp";
}

const char* quantity_text(MapQuantity quantity) {
  return quantity == MapQuantity::communication ? "communication" : "whole steps";
}

std::vector<MapQuantity> quantities_of(const std::vector<PayoffMap>& maps) {
  std::vector<MapQuantity> quantities = {MapQuantity::communication};
  if (std::any_of(maps.begin(), maps.end(), [](const PayoffMap& map) { return map.has_steps(); }))
    quantities.push_back(MapQuantity::step);
  return quantities;
}

// ── What is chosen.

std::string map_choice(const std::vector<PayoffMap>& maps) {
  std::string html = "<fieldset><legend>Map</legend>\n";
  for (std::size_t i = 0; i < maps.size(); ++i)
    html += fmt::format("<label><input type=\"radio\" name=\"map\" value=\"{}\"{}>{}</label>\n", i,
                        i == 0 ? " checked" : "", xml_text(choice_text(maps[i])));
  return html + "</fieldset>";
}

std::string quantity_choice(const std::vector<MapQuantity>& quantities) {
  std::string html;
  for (const MapQuantity each : quantities)
    html += fmt::format("<option value=\"{}\">{}</option>\n", quantity_name(each), quantity_text(each));
  return html;
}

// ── What the fills and marks stand for.

constexpr char kLineMark[] =
    "<svg viewBox=\"0 0 30 14\" aria-hidden=\"true\"><line x1=\"2\" y1=\"7\" x2=\"28\" y2=\"7\" "
    "stroke=\"currentColor\" "
    "stroke-width=\"3.5\" stroke-linecap=\"round\"/></svg>";
constexpr char kHatchMark[] =
    "<svg viewBox=\"0 0 30 14\" aria-hidden=\"true\"><path d=\"M1 13l12-12M9 13l12-12M17 13l12-12\" "
    "stroke=\"currentColor\" stroke-width=\"1.2\" opacity=\"0.5\"/></svg>";
constexpr char kOwnMark[] =
    "<svg viewBox=\"0 0 30 14\" aria-hidden=\"true\"><path d=\"M9 2h12l-6 10z\" fill=\"currentColor\"/></svg>";

std::string bands_legend(const std::vector<PayoffMap>& maps, MapQuantity quantity) {
  std::string html = fmt::format("<ul class=\"legend\" id=\"legend-{}\">\n", quantity_name(quantity));
  for (int band = 0; band < kMapBands; ++band)
    html += fmt::format("<li><span class=\"swatch\"><span class=\"band band{}\"></span></span>{}</li>\n", band,
                        band_text(band, quantity));
  if (quantity == MapQuantity::step)
    for (const auto& [letter, name] : best_strategies(maps))
      html += fmt::format("<li><b>{}</b>{}</li>\n", letter, xml_text(name));
  return html + "</ul>\n";
}

std::string marks_legend(const std::vector<PayoffMap>& maps) {
  std::string html = "<ul class=\"legend\" id=\"marks\">\n";
  const auto add = [&html](const std::string& mark, const std::string& text, const std::string& attributes = "") {
    html += "<li" + attributes + ">" + mark + xml_text(text) + "</li>\n";
  };
  add(kLineMark, "both optimizers send for as long: the gain inverts");
  add(kHatchMark, "outside of what was measured");
  add(kOwnMark,
      fmt::format("the links of {} as it is: {:.4g} GB/s", visible_name(maps[0].cluster, 24),
                  maps[0].own_link_bytes_per_second / kGigabyte),
      " id=\"own-link\"");
  std::vector<Obstacle> obstacles;
  for (const PayoffMap& map : maps)
    for (const Obstacle each : map.obstacles())
      if (std::find(obstacles.begin(), obstacles.end(), each) == obstacles.end()) obstacles.push_back(each);
  for (const Obstacle each : obstacles) add(fmt::format("<b>{}</b>", obstacle_word(each)), obstacle_sentence(each));
  return html + "</ul>\n";
}

std::string style() {
  std::vector<std::pair<std::string, Colour>> colours;
  std::string css;
  for (int band = 0; band < kMapBands; ++band) {
    colours.emplace_back(fmt::format("band{}", band), band_colour(band));
    css += fmt::format(".band{0} {{ background: var(--band{0}); opacity: {1}; }}\n", band, band_opacity(band));
  }
  return coloured_style(std::move(colours), css + page_texts::page_css + page_texts::map_css);
}

// ── The tables: they say all that the map shows, and need no script.

std::string bool_text(bool extrapolated) { return extrapolated ? "outside" : "inside"; }

std::vector<std::string> cells_of_row(const PayoffCell& cell, bool steps) {
  std::vector<std::string> row = {number_text(cell.gpus), cell.dp == 0 ? "–" : number_text(cell.dp),
                                  std::to_string(cell.tp),
                                  fmt::format("{:.4g}", cell.link_bytes_per_second / kGigabyte)};
  const auto without = [&row](Obstacle obstacle, int more) {
    row.push_back(obstacle_word(obstacle));
    row.insert(row.end(), static_cast<std::size_t>(more), "–");
  };
  if (const auto& of = cell.communication)
    append(row, {ratio_text(of->ratio()), seconds_text(of->muon_seconds), seconds_text(of->adamw_seconds),
                 ratio_text(of->bytes_ratio()), bool_text(of->extrapolated)});
  else
    without(cell.obstacle, 4);
  if (!steps) return row;
  if (const auto& of = cell.step)
    append(row, {fine_ratio_text(of->ratio()), std::string(1, of->best), seconds_text(of->muon_seconds),
                 seconds_text(of->adamw_seconds), text(of->layout), bool_text(of->extrapolated)});
  else
    without(cell.step_obstacle, 5);
  return row;
}

std::string tables(const std::vector<PayoffMap>& maps) {
  std::string html;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const bool steps = maps[i].has_steps();
    std::vector<std::string> headings = {"GPUs",       "dp",          "tp",    "GB/s between nodes", "communication",
                                         "Muon sends", "AdamW sends", "bytes", "measured range"};
    if (steps) append(headings, {"step", "strategy", "Muon", "AdamW", "layout of the step", "measured range"});
    std::string rows;
    for (const auto& row : maps[i].cells)
      for (const PayoffCell& cell : row) rows += html_row(cells_of_row(cell, steps));
    html += fmt::format("<details><summary>{}</summary>\n<p>{}</p>\n", xml_text(choice_text(maps[i])),
                        xml_text(sides_text(maps[i]))) +
            html_table(fmt::format("cells-{}", i).c_str(), "Ratios of Muon over AdamW, " + choice_text(maps[i]),
                       headings, rows) +
            "</details>\n";
  }
  return html;
}

std::string notes_list(const std::vector<PayoffMap>& maps) {
  std::vector<std::string> notes;
  for (const PayoffMap& map : maps)
    for (const std::string& note : map.notes)
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  return html_list("notes", notes);
}

// ── What the script draws.

json figure_json(const PayoffCell& cell, MapQuantity quantity) {
  const std::optional<double> ratio = ratio_of(cell, quantity);
  json figure = {{"text", ratio ? ratio_text(*ratio) : obstacle_word(obstacle_to(cell, quantity))},
                 {"band", ratio ? json(band_of(*ratio, quantity)) : json(nullptr)},
                 {"extrapolated", is_extrapolated(cell, quantity)}};
  if (ratio && quantity == MapQuantity::step) figure["letter"] = std::string(1, cell.step->best);
  return figure;
}

//   "heading", "label"  over the columns; for those who can't see the map
//   "rows", "columns"   their texts
//   "own"               where the cluster's own links lie, in columns, or null
//   "line"              [[column, row, column, row]]: from and to, in cells from the upper left corner
//   "cells"             [{"row", "column", "facts": […], "communication": {"text", "band", "extrapolated"}, "step": {…,
//                       "letter"}}], row by row; "band" is an index into "band_colours", null where "text" is a word
json map_json(const PayoffMap& map) {
  json of = {{"heading", columns_heading(map)},
             {"own", nullptr},
             {"label", "Map of " + choice_text(map) + ". " + sides_text(map)}};
  for (const char* list : {"rows", "columns", "line", "cells"}) of[list] = json::array();
  if (map.columns == MapColumns::links)
    of["own"] = std::clamp(std::log2(map.own_link_bytes_per_second / map.column_values.front()) + 0.5, 0.0,
                           static_cast<double>(map.column_values.size()));
  for (const int gpus : map.gpus) of["rows"].push_back(number_text(gpus));
  for (std::size_t c = 0; c < map.column_values.size(); ++c) of["columns"].push_back(column_text(map, c));
  for (const InversionSegment& segment : inversion_line(map))
    of["line"].push_back({segment.from.column, segment.from.row, segment.to.column, segment.to.row});
  for (std::size_t r = 0; r < map.cells.size(); ++r)
    for (std::size_t c = 0; c < map.cells[r].size(); ++c) {
      const PayoffCell& cell = map.cells[r][c];
      json each = {{"row", r}, {"column", c}, {"facts", cell_facts(cell)}};
      for (const MapQuantity quantity : kMapQuantities) each[quantity_name(quantity)] = figure_json(cell, quantity);
      of["cells"].push_back(std::move(each));
    }
  return of;
}

std::string page_data(const std::vector<PayoffMap>& maps, const std::vector<MapQuantity>& quantities) {
  json data;
  for (const PayoffMap& map : maps) data["maps"].push_back(map_json(map));
  for (const MapQuantity each : quantities) data["quantities"].push_back(quantity_name(each));
  for (int band = 0; band < kMapBands; ++band) {
    data["band_colours"].push_back(colour_json(band_colour(band)));
    data["band_opacities"].push_back(band_opacity(band));
  }
  for (const auto& [name, colour] : page_shades()) data["colours"][name] = colour_json(colour);
  return script_json(data);
}

}  // namespace

std::string payoff_page(const std::vector<PayoffMap>& maps) {
  if (maps.empty()) throw std::invalid_argument("a page of maps needs at least one of them");
  const std::vector<MapQuantity> quantities = quantities_of(maps);
  std::string legends;
  for (const MapQuantity each : quantities) legends += bands_legend(maps, each);
  return filled_page(page_texts::map_html, {{"title", xml_text("Where Muon pays: " + maps[0].subject())},
                                            {"style", style()},
                                            {"map_choice", map_choice(maps)},
                                            {"quantity_choice", quantity_choice(quantities)},
                                            {"legends", legends + marks_legend(maps)},
                                            {"notes", notes_list(maps)},
                                            {"tables", tables(maps)},
                                            {"notice", page_texts::echarts_notice},
                                            {"echarts", page_texts::echarts_js},
                                            {"data", page_data(maps, quantities)},
                                            {"tooltip_js", page_texts::tooltip_js},
                                            {"map_js", page_texts::map_js}});
}

}  // namespace muonwalk::sim
