// Maps as pictures, pages, JSON and CSV.
#include "sim/cost_model/sweet_spot_output.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "sim/cost_model/page_texts.hpp"
#include "sim/cost_model/sweet_spot_words.hpp"
#include "sim/pictures/page_texts.hpp"
#include "sim/pictures/svg_parts.hpp"
#include "src/text/text.hpp"
#include "tests/cost_model/made_up_maps.hpp"
#include "tests/io/temporary_folder.hpp"
#include "tests/pictures/drawn.hpp"
#include "tests/pictures/well_formed_xml.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// Of two clusters, one of which has rows of other sizes, and with names that nobody should give.
std::vector<SweetSpotMap> some_maps() {
  std::vector<SweetSpotMap> all = made_up_maps(round_cluster());
  for (SweetSpotMap& map : made_up_maps(cluster_of("gb300-nvl72"), 2)) all.push_back(std::move(map));
  all.push_back(sweet_spot_map({model_shape("gpt2"), round_cluster()}));  // no steps
  all[1].cluster = "</script><b>{{data}} & \"x\" which is too long to be shown";
  return all;
}

std::size_t cells_of(const SweetSpotMap& map) { return map.gpus.size() * map.column_values.size(); }

template <class Wanted>
std::size_t count_cells(const SweetSpotMap& map, const Wanted& wanted) {
  std::size_t count = 0;
  for (const auto& row : map.cells)
    for (const SweetSpotCell& cell : row) count += wanted(cell) ? 1 : 0;
  return count;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("sweet_spot_svg: any map: well-formed, nothing over something else; a cell and a word for each layout") {
  for (const SweetSpotMap& map : some_maps()) {
    INFO(map.subject() << " over " << std::string(map_columns_name(map.columns)));
    const std::string svg = sweet_spot_svg(map);
    CHECK(XmlReader(svg).complaint() == "");
    const DrawnPage page(svg);
    CHECK(page.complaint() == "");
    CHECK(page.width <= 960);
    std::size_t filled = 0;
    for (int band = 0; band < kMapBands; ++band) {
      const std::size_t expected = count_cells(map, [band](const SweetSpotCell& cell) {
        return cell.communication && band_of(cell.communication->ratio(), MapQuantity::communication) == band;
      });
      CHECK(page.of_class(fmt::format("mw-b{}", band)).size() == expected + 1);  // and the legend
      filled += expected;
    }
    CHECK(page.of_class("mw-none").size() == cells_of(map) - filled);
    CHECK(page.of_class("mw-outside").size() == 1 + count_cells(map, [](const SweetSpotCell& cell) {
                                                  return (cell.communication && cell.communication->extrapolated) ||
                                                         (cell.step && cell.step->extrapolated);
                                                }));
    const std::size_t segments = inversion_line(map).size();
    CHECK(page.of_class("mw-line").size() == segments + 1);
    CHECK(page.of_class("mw-casing").size() == segments);
    CHECK(count_of(svg, "class=\"mw-own\"") == (map.columns == MapColumns::links ? 2 : 0));
    for (const auto& row : map.cells)
      for (const SweetSpotCell& cell : row) {
        if (cell.communication)
          CHECK(svg.find(fmt::format("mw-ratio mw-halo\">{}<", xml_text(ratio_text(cell.communication->ratio())))) !=
                std::string::npos);
        if (cell.step)
          CHECK(svg.find(fmt::format(">{} {}<", ratio_text(cell.step->ratio()), cell.step->best)) != std::string::npos);
      }
    for (const Obstacle each : map.obstacles())
      CHECK(svg.find(fmt::format(">{}<", obstacle_sentence(each))) != std::string::npos);
    for (const auto& [letter, name] : best_strategies({map})) {
      CHECK(svg.find(fmt::format(">{}<", letter)) != std::string::npos);
      CHECK(svg.find(fmt::format(">{}<", name)) != std::string::npos);
    }
    CHECK(best_strategies({map}).empty() != map.has_steps());
    CHECK((svg.find("the whole step") != std::string::npos) == map.has_steps());
    CHECK(svg.find("activations") != std::string::npos);
    CHECK(svg == sweet_spot_svg(map));
  }
}

TEST_CASE("sweet_spot_svg: a cell lies in its row and column, and the line between those that differ") {
  const SweetSpotMap map = made_up_maps(round_cluster())[0];
  const std::string svg = sweet_spot_svg(map);
  const DrawnPage page(svg);
  std::vector<Drawn> cells;
  for (const Drawn& one : page.all)
    if (one.tag == "rect" && one.text.find(" GPUs = dp ") != std::string::npos && one.css_class != "mw-outside")
      cells.push_back(one);
  REQUIRE(cells.size() == cells_of(map));
  const std::size_t columns = map.column_values.size();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    CHECK(cells[i].text.find(cell_facts(map.cells[i / columns][i % columns])[0]) == 0);
    if (i % columns > 0) CHECK(cells[i].x == doctest::Approx(cells[i - 1].x + cells[i].width + 2).epsilon(0.01));
    if (i >= columns) CHECK(cells[i].y == doctest::Approx(cells[i - columns].y + cells[i].height + 2).epsilon(0.01));
  }
  // 32 GB/s, the cluster's own links, are the sixth column.
  const std::size_t mark = svg.find("<path d=\"M");
  REQUIRE(mark != std::string::npos);
  CHECK(std::strtod(svg.c_str() + mark + 10, nullptr) + 5 ==
        doctest::Approx(cells[5].x + cells[5].width / 2).epsilon(0.01));
  const std::vector<InversionSegment> line = inversion_line(map);
  const std::vector<Drawn> drawn = page.of_class("mw-line");
  REQUIRE(drawn.size() == line.size() + 1);
  REQUIRE_FALSE(line.empty());
  for (std::size_t i = 0; i < line.size(); ++i) {
    const double column = std::min(line[i].from.column, line[i].to.column);
    const double row = std::min(line[i].from.row, line[i].to.row);
    CHECK(drawn[i].x == doctest::Approx(cells[0].x - 1 + column * (cells[0].width + 2)).epsilon(0.01));
    CHECK(drawn[i].y == doctest::Approx(cells[0].y - 1 + row * (cells[0].height + 2)).epsilon(0.01));
  }
}

TEST_CASE("bands: every ratio is in one, 1 begins the fourth, and their texts say where they end") {
  for (const MapQuantity quantity : kMapQuantities) {
    CHECK(band_of(1, quantity) == 3);
    CHECK(band_of(std::nextafter(1.0, 0.0), quantity) == 2);
    CHECK(band_of(1e-9, quantity) == 0);
    CHECK(band_of(1e9, quantity) == kMapBands - 1);
    for (int band = 1; band + 1 < kMapBands; ++band) {
      double from = 0, to = 0;
      REQUIRE(std::sscanf(band_text(band, quantity).c_str(), "%lf to %lf", &from, &to) == 2);
      CHECK(band_of(from, quantity) == band);
      CHECK(band_of(std::nextafter(to, 0.0), quantity) == band);
      CHECK(band_of(to, quantity) == band + 1);
    }
  }
}

TEST_CASE("ratio_text: never 0, at most six characters, and near to the number") {
  for (double ratio = 1e-6; ratio < 1e8; ratio *= 1.37) {
    const std::string text = ratio_text(ratio);
    CAPTURE(text);
    CHECK(text.size() <= 6);
    CHECK(text.find("nan") == std::string::npos);
    const double number = std::strtod(text.c_str() + (text[0] == '<' || text[0] == '>' ? 1 : 0), nullptr);
    CHECK(number > 0);
    if (text[0] != '<' && text[0] != '>') CHECK(std::abs(number - ratio) <= std::max(0.00501, ratio * 0.006));
  }
}

TEST_CASE("sweet_spot_text: at most 100 columns, a line for each row with all of its ratios") {
  for (const SweetSpotMap& map : some_maps()) {
    const std::vector<std::string> lines = sweet_spot_text(map);
    for (const std::string& line : lines) CHECK(text_width(line) <= kColumns);
    for (std::size_t r = 0; r < map.gpus.size(); ++r) {
      const auto line = std::find_if(lines.begin(), lines.end(), [&](const std::string& each) {
        const std::size_t begin = each.find_first_not_of(' ');
        return begin != std::string::npos &&
               each.compare(begin, number_text(map.gpus[r]).size() + 1, number_text(map.gpus[r]) + " ") == 0;
      });
      REQUIRE(line != lines.end());
      std::istringstream words(*line);
      std::string word;
      words >> word;
      for (const SweetSpotCell& cell : map.cells[r]) {
        words >> word;
        const std::string ratio = cell.communication ? ratio_text(cell.communication->ratio()) : "";
        CHECK(word == (cell.communication ? ratio + (cell.communication->extrapolated ? "*" : "")
                                          : obstacle_word(cell.obstacle)));
      }
    }
    CHECK(std::any_of(lines.begin(), lines.end(),
                      [](const std::string& line) { return line.find("activations") != std::string::npos; }));
  }
}

TEST_CASE("sweet_spot_json: every cell with its figures, null where there is none, and the line") {
  for (const SweetSpotMap& map : some_maps()) {
    const nlohmann::json json = nlohmann::json::parse(sweet_spot_json(map));
    CHECK(json["format"] == "muonwalk-scale-map");
    CHECK(json["over"] == map_columns_name(map.columns));
    REQUIRE(json["cells"].size() == cells_of(map));
    CHECK(json["inversion_line_cells"].size() == inversion_line(map).size());
    const std::size_t columns = map.column_values.size();
    for (std::size_t i = 0; i < cells_of(map); ++i) {
      const SweetSpotCell& cell = map.cells[i / columns][i % columns];
      const nlohmann::json& of = json["cells"][i];
      CHECK(of["gpus"] == cell.gpus);
      CHECK(of["obstacle"].is_null() == cell.communication.has_value());
      CHECK(of["communication"].is_null() != cell.communication.has_value());
      if (cell.communication) CHECK(of["communication"]["ratio"] == cell.communication->ratio());
      CHECK(of["step_obstacle"].is_null() == cell.step.has_value());
      CHECK(of["step"].is_null() != cell.step.has_value());
      if (cell.step) CHECK(of["step"]["best_strategy"] == std::string(1, cell.step->best));
    }
  }
}

TEST_CASE("sweet_spot_csv: a line for each cell with as many fields as the first line; no name becomes a formula") {
  for (SweetSpotMap map : some_maps()) {
    map.model = "=1+1";
    std::istringstream csv(sweet_spot_csv(map));
    std::string line;
    std::getline(csv, line);
    const std::vector<std::string> heads = fields_of(line);
    std::size_t lines = 0;
    const auto at = [&heads](const char* name) {
      return static_cast<std::size_t>(std::find(heads.begin(), heads.end(), name) - heads.begin());
    };
    for (; std::getline(csv, line); ++lines) {
      const std::vector<std::string> fields = fields_of(line);
      const SweetSpotCell& cell = map.cells[lines / map.column_values.size()][lines % map.column_values.size()];
      REQUIRE(fields.size() == heads.size());
      CHECK(fields[0] == "'=1+1");
      CHECK(fields[at("gpus")] == std::to_string(cell.gpus));
      CHECK(fields[at("communication_ratio")] ==
            (cell.communication ? fmt::format("{:.6g}", cell.communication->ratio()) : ""));
      CHECK(fields[at("obstacle")] == obstacle_word(cell.obstacle));
      CHECK(fields[at("best_strategy")] == (cell.step ? std::string(1, cell.step->best) : ""));
      CHECK(fields[at("step_extrapolated")] == (cell.step ? cell.step->extrapolated ? "1" : "0" : ""));
    }
    CHECK(lines == cells_of(map));
  }
}

TEST_CASE("sweet_spot_page: one heading, one language, tables of all cells, and nothing from elsewhere") {
  const std::vector<SweetSpotMap> all = some_maps();
  const std::string page = sweet_spot_page({all[1], all[0]});
  CHECK(count_of(page, "<h1>") == 1);
  CHECK(page.find("<html lang=\"en\">") != std::string::npos);
  CHECK(page.find("<b>{{data}}") == std::string::npos);
  std::string own = page;
  const std::size_t library = own.find(page_texts::echarts_js);
  REQUIRE(library != std::string::npos);
  own.erase(library, std::string(page_texts::echarts_js).size());
  CHECK_FALSE(std::regex_search(own, std::regex("(src|href)=\"(?!data:)")));
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t begin = own.find(fmt::format("<table id=\"cells-{}\"", i));
    const std::string table = own.substr(begin, own.find("</table>", begin) - begin);
    CHECK(count_of(table, "<tr>") == cells_of(all[1 - i]) + 1);
    for (const auto& row : all[1 - i].cells)
      for (const SweetSpotCell& cell : row)
        if (cell.communication)
          CHECK(table.find("<td>" + short_seconds(cell.communication->muon_seconds) + "</td>") != std::string::npos);
    for (const std::string& note : all[1 - i].notes) CHECK(own.find(xml_text(note)) != std::string::npos);
  }
  const std::string without_steps = sweet_spot_page({all.back()});
  CHECK(without_steps.find("legend-step") == std::string::npos);
  CHECK_THROWS_AS(sweet_spot_page({}), std::invalid_argument);
}

TEST_CASE("embed_texts: the library holds the files of a map's page byte for byte") {
  const auto file = [](const std::string& name) {
    return read_text(MUONWALK_SOURCE_DIR "/sim/cost_model/page/" + name);
  };
  CHECK(page_texts::map_html == file("map.html"));
  CHECK(page_texts::map_css == file("map.css"));
  CHECK(page_texts::map_js == file("map.js"));
}
