// Maps as pages, text and JSON.
#include "tools/scale/payoff_output.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "sim/replay/page_texts.hpp"
#include "sim/replay/svg_parts.hpp"
#include "src/text/text.hpp"
#include "src/text/units.hpp"
#include "tools/scale/tests/made_up_maps.hpp"

using namespace muonwalk;
using namespace muonwalk::sim;

namespace {

// Of two clusters, one of which has rows of other sizes, and with names that nobody should give.
std::vector<PayoffMap> some_maps() {
  std::vector<PayoffMap> all = made_up_maps(round_cluster());
  for (PayoffMap& map : made_up_maps(cluster_of("gb300-nvl72"), 2)) all.push_back(std::move(map));
  all.push_back(payoff_map({model_shape("gpt2"), round_cluster(), software_of("nanotron")}));
  all[1].cluster = "</script><b>{{data}} & \"x\" which is too long to be shown";
  return all;
}

std::size_t cells_of(const PayoffMap& map) { return map.gpus.size() * map.column_values.size(); }

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

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

TEST_CASE("payoff_text: at most 100 columns, a line for each row with all of its ratios") {
  for (const PayoffMap& map : some_maps()) {
    const std::vector<std::string> lines = payoff_text(map);
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
      for (const PayoffCell& cell : map.cells[r]) {
        words >> word;
        const std::string ratio = cell.communication ? ratio_text(cell.communication->ratio()) : "";
        CHECK(word ==
              (cell.communication ? ratio + (cell.communication->extrapolated ? "*" : "") : cell.obstacle->word));
      }
    }
    CHECK(std::any_of(lines.begin(), lines.end(),
                      [](const std::string& line) { return line.find("activations") != std::string::npos; }));
  }
}

TEST_CASE("payoff_json: every cell with its figures, and null where there is none") {
  for (const PayoffMap& map : some_maps()) {
    const nlohmann::json json = nlohmann::json::parse(payoff_json(map));
    CHECK(json["format"] == "muonwalk-scale-map");
    CHECK(json["over"] == map_columns_name(map.columns));
    REQUIRE(json["cells"].size() == cells_of(map));
    const std::size_t columns = map.column_values.size();
    for (std::size_t i = 0; i < cells_of(map); ++i) {
      const PayoffCell& cell = map.cells[i / columns][i % columns];
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

TEST_CASE("payoff_page: one heading, one language, tables of all cells, and nothing from elsewhere") {
  const std::vector<PayoffMap> all = some_maps();
  const std::string page = payoff_page({all[1], all[0]});
  CHECK(count_of(page, "<h1>") == 1);
  CHECK(page.find("<html lang=\"en\">") != std::string::npos);
  CHECK(page.find("<b>{{data}}") == std::string::npos);
  std::string own = page;
  const std::size_t library = own.find(page_texts::echarts_js);
  REQUIRE(library != std::string::npos);
  own.erase(library, std::string(page_texts::echarts_js).size());
  CHECK_FALSE(std::regex_search(own, std::regex("(src|href)=\"(?!data:)")));
  for (const PayoffMap& map : {all[0], all[1]}) {
    for (const std::string& line : payoff_text(map)) CHECK(own.find(xml_text(line)) != std::string::npos);
    for (const std::string& note : map.notes) CHECK(own.find(xml_text(note)) != std::string::npos);
  }
  CHECK_THROWS_AS(payoff_page({}), std::invalid_argument);
}

TEST_CASE("legend: every word and letter of a table is explained below it") {
  for (const PayoffMap& map : some_maps()) {
    const std::vector<std::string> lines = payoff_text(map);
    const auto explained = [&](const std::string& word) {
      return std::any_of(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.rfind(word + ": ", 0) == 0; });
    };
    for (const auto& row : map.cells)
      for (const PayoffCell& cell : row) {
        if (!cell.communication) CHECK(explained(cell.obstacle->word));
        CHECK(explained(cell.step ? std::string(1, cell.step->best) : cell.step_obstacle->word));
      }
  }
}
