#include "tools/scale/payoff_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "sim/replay/page_parts.hpp"
#include "sim/replay/page_texts.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/optim/strategies/strategy.hpp"
#include "src/text/names.hpp"
#include "src/text/table.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"

namespace muonwalk::sim {

namespace page_texts {
extern const char *const map_html, *const map_css, *const map_js;  // the folder page/, by embed_texts
}

namespace {

// ── Words

// A ratio with three digits after the point, where there is room, as whole steps differ by little: "1.003".
std::string fine_ratio_text(double ratio) {
  return ratio < 0.0995 || ratio >= 9.9995 ? ratio_text(ratio) : fmt::format("{:.3f}", ratio);
}

// What stands over a column, "64", and what all of them are.
std::string column_text(const PayoffMap& map, std::size_t column) {
  const double value = map.column_values[column];
  return fmt::format("{:.4g}", map.columns == MapColumns::links ? value / kGigabyte : value);
}
std::string columns_heading(const PayoffMap& map) {
  return map.columns == MapColumns::links ? "GB/s between nodes, out of each GPU" : "tensor-parallel ranks (tp)";
}

// What tells a map from the others of its page.
std::string map_text(const PayoffMap& map) {
  return map.columns == MapColumns::links ? fmt::format("GPUs × link speed, tp {}", map.tp) : "dp × tp";
}

// The figure of a cell, or a word why there is none.
std::string communication_text(const PayoffCell& cell) {
  return cell.communication ? ratio_text(cell.communication->ratio()) : cell.obstacle->word;
}
std::string step_text(const PayoffCell& cell) {
  return cell.step ? ratio_text(cell.step->ratio()) : cell.step_obstacle->word;
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

// A cell in words, a fact each, the first of which says which cell it is.
std::vector<std::string> cell_facts(const PayoffCell& cell) {
  std::vector<std::string> facts;
  facts.push_back(cell.dp == 0
                      ? fmt::format("{} GPUs, tp {}", number_text(cell.gpus), cell.tp)
                      : fmt::format("{} GPUs = dp {} × tp {}", number_text(cell.gpus), number_text(cell.dp), cell.tp));
  facts.push_back(fmt::format("{:.4g} GB/s between nodes", cell.link_bytes_per_second / kGigabyte));
  if (cell.obstacle != nullptr) {
    facts.push_back(std::string("no figure: ") + cell.obstacle->sentence);
    return facts;
  }
  add_communication(*cell.communication, facts);
  if (cell.step)
    add_step(*cell.step, facts);
  else
    facts.push_back(std::string("no step: ") + cell.step_obstacle->sentence);
  return facts;
}

// How the map divides, in a sentence.
std::string sides_text(const PayoffMap& map) {
  int below = 0, above = 0, without = 0;
  for (const auto& row : map.cells)
    for (const PayoffCell& cell : row)
      (!cell.communication ? without : cell.communication->ratio() < 1 ? below : above) += 1;
  const std::string text = fmt::format("Muon sends for less time than AdamW in {} of {} cells, and not in {}", below,
                                       below + above + without, above);
  return text + (without == 0 ? "." : fmt::format("; {} have no figure.", without));
}

// What the letters and words in the cells of these maps stand for.
std::vector<std::pair<std::string, std::string>> legend(const std::vector<PayoffMap>& maps) {
  std::set<const Obstacle*> met;
  std::set<char> letters;
  for (const PayoffMap& map : maps)
    for (const auto& row : map.cells)
      for (const PayoffCell& cell : row) {
        met.insert({cell.obstacle, cell.step_obstacle});
        if (cell.step) letters.insert(cell.step->best);
      }
  std::vector<std::pair<std::string, std::string>> entries;
  for (const Obstacle* each :
       {&obstacles::too_few, &obstacles::tp, &obstacles::nodes, &obstacles::batch, &obstacles::memory})
    if (met.count(each) > 0) entries.emplace_back(each->word, each->sentence);
  for (const Strategy& strategy : strategies())
    if (letters.count(strategy.letter) > 0) entries.emplace_back(std::string(1, strategy.letter), strategy.name);
  return entries;
}

template <class CellText>
void add_table(const PayoffMap& map, const char* quantity, const CellText& cell_text, std::vector<std::string>& lines) {
  Table table({{"GPUs", number_text}});
  for (std::size_t c = 0; c < map.column_values.size(); ++c) table.column({column_text(map, c) + " ", Side::right});
  for (std::size_t r = 0; r < map.cells.size(); ++r) {
    std::vector<Cell> row = {map.gpus[r]};
    for (const PayoffCell& cell : map.cells[r]) row.emplace_back(cell_text(cell));
    table.row(row);
  }
  lines.push_back(fmt::format("{}, Muon over AdamW, by {}", quantity, columns_heading(map)));
  append(lines, table.lines());
  lines.emplace_back();
}

const char* mark(bool extrapolated) { return extrapolated ? "*" : " "; }

// ── JSON

using Json = nlohmann::ordered_json;

Json word_json(const Obstacle* obstacle) { return obstacle == nullptr ? Json(nullptr) : Json(obstacle->word); }

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

Json map_json(const PayoffMap& map) {
  Json cells = Json::array();
  for (const auto& row : map.cells)
    for (const PayoffCell& cell : row) cells.push_back(cell_json(cell));
  return {{"format", "muonwalk-scale-map"},
          {"version", 1},
          {"model", map.model},
          {"cluster", map.cluster},
          {"over", map_columns_name(map.columns)},
          {"gpus", map.gpus},
          {map.columns == MapColumns::links ? "links_bytes_per_second" : "tp", map.column_values},
          {"own_link_gb_per_s",
           map.own_link_bytes_per_second > 0 ? Json(map.own_link_bytes_per_second / kGigabyte) : Json(nullptr)},
          {"notes", map.notes},
          {"cells", cells}};
}

// ── The page

// What the script draws: the maps as payoff_json has them, and their words.
Json page_data(const std::vector<PayoffMap>& maps) {
  Json data = {{"maps", Json::array()}, {"legend", legend(maps)}};
  for (const PayoffMap& map : maps) {
    Json of = map_json(map);
    of["name"] = map_text(map);
    of["heading"] = columns_heading(map);
    of["sides"] = sides_text(map);
    for (std::size_t c = 0; c < map.column_values.size(); ++c) of["columns"].push_back(column_text(map, c));
    std::size_t i = 0;
    for (const auto& row : map.cells)
      for (const PayoffCell& cell : row) {
        Json& each = of["cells"][i++];
        each["facts"] = cell_facts(cell);
        each["texts"] = {{"communication", communication_text(cell)}, {"step", step_text(cell)}};
      }
    data["maps"].push_back(std::move(of));
  }
  for (const auto& [name, colour] : page_shades()) data["colours"][name] = colour_json(colour);
  data["colours"]["below"] = colour_json(parameter_colour(0));
  data["colours"]["above"] = colour_json(parameter_colour(4));
  return data;
}

std::string notes_list(const std::vector<PayoffMap>& maps) {
  std::vector<std::string> notes;
  for (const PayoffMap& map : maps)
    for (const std::string& note : map.notes)
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  return html_list("notes", notes);
}

}  // namespace

std::string ratio_text(double ratio) {
  if (ratio < 0.005) return "<0.01";
  if (ratio < 9.995) return fmt::format("{:.2f}", ratio);
  return ratio < 99.95 ? fmt::format("{:.1f}", ratio) : ratio < 99999.5 ? fmt::format("{:.0f}", ratio) : ">99999";
}

std::vector<std::string> payoff_text(const PayoffMap& map) {
  std::vector<std::string> lines = {"Where Muon pays: " + map.subject(), ""};
  add_table(
      map, "communication",
      [](const PayoffCell& cell) {
        return communication_text(cell) + (cell.communication ? mark(cell.communication->extrapolated) : "");
      },
      lines);
  add_table(
      map, "step",
      [](const PayoffCell& cell) {
        return cell.step ? fmt::format("{} {}{}", step_text(cell), cell.step->best, mark(cell.step->extrapolated))
                         : step_text(cell);
      },
      lines);
  append(lines, wrap_text("* outside of what was measured. " + sides_text(map), 2));
  for (const auto& [word, meaning] : legend({map})) append(lines, wrap_text(fmt::format("{}: {}.", word, meaning), 2));
  for (const std::string& note : map.notes) append(lines, wrap_text(note, 2));
  return lines;
}

std::string payoff_json(const PayoffMap& map) {
  return map_json(map).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string payoff_page(const std::vector<PayoffMap>& maps) {
  if (maps.empty()) throw std::invalid_argument("a page of maps needs at least one of them");
  std::string tables;
  for (const PayoffMap& map : maps)
    tables += fmt::format("<details><summary>{}</summary>\n<pre>{}</pre>\n</details>\n", xml_text(map_text(map)),
                          xml_text(fmt::format("{}", fmt::join(payoff_text(map), "\n"))));
  return filled_page(page_texts::map_html,
                     {{"title", xml_text("Where Muon pays: " + maps[0].subject())},
                      {"style", coloured_style({{"below", parameter_colour(0)}, {"above", parameter_colour(4)}},
                                               std::string(page_texts::page_css) + page_texts::map_css)},
                      {"notes", notes_list(maps)},
                      {"tables", tables},
                      {"notice", page_texts::echarts_notice},
                      {"echarts", page_texts::echarts_js},
                      {"data", script_json(page_data(maps))},
                      {"tooltip_js", page_texts::tooltip_js},
                      {"map_js", page_texts::map_js}});
}

}  // namespace muonwalk::sim
